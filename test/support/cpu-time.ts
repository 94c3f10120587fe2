/** What work costs, in a unit that others on the machine do not change. */

/** Time of this thread on the processor, ms: the least of some runs, since one may meet the garbage of others. */
export function leastCpuMs(work: () => unknown, runs = 3): number {
  const measured = Array.from({ length: runs }, () => {
    const before = process.threadCpuUsage()
    work()
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1_000
  })
  return Math.min(...measured)
}

/**
 * Loaded into a daemon: tells its parent what it uses (`ProcessUse`), and ends with it. It is JavaScript: to strip
 * types would load 10 MiB into the daemon.
 */
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ cpuSeconds: (user + system) / 1e6, rssBytes: process.memoryUsage.rss() })
})
process.on('disconnect', () => process.exit(1))
process.channel?.unref()

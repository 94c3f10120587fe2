/** The daemon in a process of its own, on a configuration that a test changes while it runs. */
import { renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { vi } from 'vitest'
import { aFile, startTocsin, type RunningTocsin } from './tocsin.ts'

export const reloaded = 'configuration reloaded'
export const kept = 'configuration not reloaded; the old one stays'

export interface Daemon extends RunningTocsin {
  file: string
  /** Writes the file and sends SIGHUP. */
  reload(text: string): void
  /** Lines of the log with this message. */
  lines(message: string): Record<string, unknown>[]
  /** Waits for so many of them. */
  hasSaid(message: string, times: number): Promise<void>
  /** A rendering that was made since the last call: one is shared by all who ask within a second. */
  metrics(): Promise<string>
}

/** `files`: by name, beside the configuration. */
export async function startDaemon(
  text: string,
  firstWords = 'tocsin runs',
  files: Readonly<Record<string, string>> = {},
): Promise<Daemon> {
  const file = aFile('tocsin.yaml', text)
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(dirname(file), name), content)
  const running = startTocsin('run', '--config', file)
  await running.says(firstWords)
  let scraped = ''
  const lines = (message: string): Record<string, unknown>[] =>
    running
      .soFar()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => msg === message)
  return {
    ...running,
    file,
    reload(next) {
      writeFileSync(`${file}.new`, next)
      renameSync(`${file}.new`, file)
      running.child.kill('SIGHUP')
    },
    lines,
    hasSaid: (message, times) =>
      vi.waitUntil(() => lines(message).length >= times, { timeout: 50_000 }).then(() => undefined),
    async metrics() {
      const port = lines('http server listens')[0]!['port'] as number
      const scrape = async (): Promise<string> =>
        (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      const before = scraped
      // no two renderings have the same memory and time of the processor
      await vi.waitUntil(async () => (scraped = await scrape()) !== before, { timeout: 50_000 })
      return scraped
    },
  }
}

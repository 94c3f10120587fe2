/** The code that decides what is lost, repeated, misrouted or leaked. */
import { readdirSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'

/**
 * What is left out of them: keys of the configuration and what they say (a test of the page shows each),
 * and what hands out the work, in `feeds` and in `delivery`.
 */
const rooms: Readonly<Record<string, { files: string[]; but: string[] }>> = {
  feeds: {
    files: ['src/feeds/*.ts', 'src/feed-types/*.ts', 'src/masking/*.ts'],
    but: ['src/feeds/{lanes,lane}.ts', 'src/feed-types/*config.ts'],
  },
  ledger: { files: ['src/store/*.ts'], but: [] },
  scripts: { files: ['src/redis/scripts/**/*.lua'], but: [] },
  routing: { files: ['src/routing/*.ts'], but: ['src/routing/config.ts'] },
  delivery: { files: ['src/delivery/*.ts'], but: [] },
  grouping: { files: ['src/grouping/*.ts'], but: [] },
  upstream: { files: ['src/upstream/{links,bounded-text}.ts'], but: [] },
  secrets: {
    files: [
      'src/lib/sealed-secret.ts',
      'src/sinks/address-guard.ts',
      'src/sinks/webhook/signature.ts',
      'src/messages/sanitize.ts',
      'src/lib/private-files.ts',
      'src/ops/reload-access.ts',
    ],
    but: [],
  },
  messages: {
    files: [
      'src/messages/guidance.ts',
      'src/sinks/{event-data,templates}.ts',
      'src/sinks/template-*.ts',
    ],
    but: ['src/sinks/template-config.ts'],
  },
}

/** Paths from the root with their room. */
export function filesInRooms(root: string): { room: string; file: string }[] {
  const all = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .map((file) => `src/${file.replaceAll('\\', '/')}`)
    .toSorted()
  return Object.entries(rooms).flatMap(([room, { files, but }]) =>
    all
      .filter((file) => files.some((glob) => matchesGlob(file, glob)))
      .filter((file) => !but.some((glob) => matchesGlob(file, glob)))
      .map((file) => ({ room, file })),
  )
}

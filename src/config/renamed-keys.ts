/** Keys that an older version called otherwise. Each is read for one release, with a warning. */
import type { Path, RenamedKey } from './yaml-source.ts'

const renamedKeys: readonly (RenamedKey & {
  /** Matches the path of the section that holds it, joined by dots. */
  section: RegExp
})[] = [
  { section: /^$/, was: 'notices', now: 'self_alerts' },
  { section: /^self_alerts$/, was: 'or', now: 'fallback' },
  { section: /^retention$/, was: 'story', now: 'history' },
  {
    section: /^feeds\.[^.]+$/,
    was: 'backlog',
    now: 'initial_poll',
    words: { summarise: 'summary' },
  },
  { section: /^route(?:\.routes\.\d+)*$/, was: 'stage', now: 'mode' },
  { section: /^silences\.\d+$/, was: 'severity', now: 'max_severity' },
]

/** The new name of a key of the section at `path`; undefined: it is not an old one. */
export function findRenamedKey(path: Path, key: string): RenamedKey | undefined {
  const section = path.join('.')
  return renamedKeys.find(({ was, section: at }) => was === key && at.test(section))
}

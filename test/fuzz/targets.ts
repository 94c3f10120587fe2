/** Every target that is run by name. */
import type { TargetModule } from './engine/target.ts'
import * as addresses from './targets/addresses.ts'
import * as answers from './targets/answers.ts'
import * as config from './targets/config.ts'
import * as links from './targets/links.ts'
import * as masks from './targets/masks.ts'
import * as matcher from './targets/matcher.ts'
import * as messages from './targets/messages.ts'
import * as pages from './targets/pages.ts'
import * as text from './targets/text.ts'
import * as times from './targets/times.ts'

export const targets: Readonly<Record<string, TargetModule>> = {
  addresses,
  answers,
  config,
  links,
  masks,
  matcher,
  messages,
  pages,
  text,
  times,
}

import { describeAnything, describeSocialMediaAccount } from './describe-anything.ts'
import {
  describeCheckedCredential,
  describeCredential,
  describeLeak,
  describeLeakedCredential,
} from './describe-credentials.ts'
import { describeBucket, describeService } from './describe-exposures.ts'
import { describeBot, describeStealerLog } from './describe-infections.ts'
import { describeCard, describeListing } from './describe-market.ts'
import { describeLookalike, describeRansomleak } from './describe-threats.ts'
import {
  describeBlogPost,
  describeChatMessage,
  describeForum,
  describePaste,
} from './describe-writings.ts'
import { describeReport } from './describe-report.ts'
import { describeCanary, describeNotice } from './describe-tocsin.ts'
import type { Describe } from './description.ts'

/** Who describes which type. To teach Tocsin a type: a describer, a row here, a sample, a test. */
const describers = new Map<string, Describe>([
  ['stealer_log', describeStealerLog],
  ['bot', describeBot],
  ['leaked_credential', describeLeakedCredential],
  ['credential', describeCredential],
  ['leak', describeLeak],
  ['valid_credential', describeCheckedCredential('Valid credential')],
  ['invalid_credential', describeCheckedCredential('Invalid credential')],
  ['mitigated_credential', describeCheckedCredential('Mitigated credential')],
  ['ransomleak', describeRansomleak],
  ['document', describeRansomleak],
  ['lookalike', describeLookalike],
  ['domain', describeLookalike],
  ['service', describeService],
  ['bucket', describeBucket('Open bucket')],
  ['bucket_object', describeBucket('File in an open bucket')],
  ['listing', describeListing],
  ['cc', describeCard],
  ['chat_message', describeChatMessage],
  ['forum_post', describeForum('Forum post')],
  ['forum_topic', describeForum('Forum topic')],
  ['blog_post', describeBlogPost],
  ['paste', describePaste],
  ['social_media_account', describeSocialMediaAccount],
  ['threat_flow_report', describeReport],
  ['notice', describeNotice],
  ['canary', describeCanary],
])

export const describedTypes: readonly string[] = [...describers.keys()]

export function describerOf(type: string): Describe {
  return describers.get(type) ?? describeAnything
}

import {
  anythingTypes,
  describeAnything,
  describeDomainData,
  describeSocialMediaAccount,
} from './describe-anything.ts'
import {
  describeCheckedCredential,
  describeCredential,
  describeLeak,
  describeLeakedCredential,
  describeLeakedData,
} from './describe-credentials.ts'
import { describeBucket, describeCode, describeService } from './describe-exposures.ts'
import { describeBot, describeCookie, describeStealerLog } from './describe-infections.ts'
import { describeCard, describeCardBase, describeListing } from './describe-market.ts'
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

/** Who describes which type. A type that needs no words of its own has a row in describe-anything.ts. */
const describers = new Map<string, Describe>([
  ['stealer_log', describeStealerLog],
  ['bot', describeBot],
  ['cookie', describeCookie],
  ['leaked_credential', describeLeakedCredential],
  ['credential', describeCredential],
  ['leak', describeLeak],
  ['leaked_data', describeLeakedData('Leaked data')],
  ['leaked_file', describeLeakedData('Leaked file')],
  ['ransomleak_file_listing', describeLeakedData('Files of a ransom leak')],
  ['valid_credential', describeCheckedCredential('Valid credential')],
  ['invalid_credential', describeCheckedCredential('Invalid credential')],
  ['mitigated_credential', describeCheckedCredential('Mitigated credential')],
  ['ransomleak', describeRansomleak],
  ['document', describeRansomleak],
  ['lookalike', describeLookalike],
  ['domain', describeLookalike],
  [
    'domain_certificate',
    describeDomainData('Domain certificate', ['Subject', 'subject', 'common_name']),
  ],
  ['domain_favicon', describeDomainData('Domain favicon', ['Favicon', 'favicon_url', 'url'])],
  ['domain_dns_records', describeDomainData('Domain DNS records', ['Records', 'records', 'value'])],
  [
    'domain_ip_address',
    describeDomainData('Domain IP address', ['IP address', 'ip_address', 'ip']),
  ],
  ['domain_screenshot', describeDomainData('Domain screenshot', ['Page title', 'title'])],
  ['domain_title', describeDomainData('Domain title', ['Page title', 'title'])],
  ['domain_whois_rdap', describeDomainData('Domain registration', ['Registrar', 'registrar'])],
  ['whois', describeDomainData('Domain registration', ['Registrar', 'registrar'])],
  ['service', describeService],
  ['bucket', describeBucket('Open bucket')],
  ['bucket_object', describeBucket('File in an open bucket')],
  ['docker_image', describeCode('Docker image')],
  ['docker_repository', describeCode('Docker repository')],
  ['driller_source_code', describeCode('Source code')],
  ['source_code_secret', describeCode('Secret in source code')],
  ['listing', describeListing],
  ['cc', describeCard],
  ['cc_bases', describeCardBase],
  ['chat_message', describeChatMessage],
  ['forum_post', describeForum('Forum post')],
  ['forum_topic', describeForum('Forum topic')],
  ['driller_forum_post', describeForum('Forum post')],
  ['driller_forum_topic', describeForum('Forum topic')],
  ['blog_post', describeBlogPost],
  ['paste', describePaste],
  ['social_media_account', describeSocialMediaAccount],
  ['threat_flow_report', describeReport],
  ['notice', describeNotice],
  ['canary', describeCanary],
])

/** Types that have words of their own; any other is named as the service names it. */
export const describedTypes: readonly string[] = [...describers.keys(), ...anythingTypes]

export function describerOf(type: string): Describe {
  return describers.get(type) ?? describeAnything
}

/** What a reader of an alert does first, by event type; the file's `messages.next_steps` replaces it. */

const resetAndLook =
  'Reset the password of this account, end its sessions, and look for the same password elsewhere.'
const checkImage =
  'Check whether it is yours and meant to be public; if not, make it private and replace every secret in it.'
const closeAccess =
  'Check whether it is yours; if so, close public access, and find in its logs who has read it.'
const readAndAssess =
  'Read it whole, check whether what it says of you is true, and keep a copy: such pages vanish.'
const checkOffer =
  'Check whether what is offered comes from you; if so, close the way it left, and do not contact the seller yourself.'
const takeDown =
  'Check whether it belongs to you; if not, block it in mail and web filters and ask for its takedown.'
const checkData =
  'Check whether the data is yours and where it comes from; reset what it exposes, and tell those it is about.'
const compareRecords =
  'Compare it with your own records; if nobody of yours made this change, find out who did.'

/** Types without a line have none: nothing is true of all of them. */
export const builtInNextSteps: ReadonlyMap<string, string> = new Map([
  [
    'stealer_log',
    'Reset the passwords of these accounts, end their sessions, and look for reuse; the machine is infected: isolate it.',
  ],
  [
    'bot',
    'Find the machine and isolate it; reset the passwords of those who use it, and end their sessions.',
  ],
  ['cookie', 'End all sessions of this account: a stolen cookie works without a password.'],
  ['leaked_credential', resetAndLook],
  ['credential', resetAndLook],
  [
    'leak',
    'Find your accounts in this leak, reset those whose passwords are still in use, and look for reuse.',
  ],
  ['leaked_data', checkData],
  ['leaked_file', checkData],
  ['ransomleak_file_listing', checkData],
  [
    'valid_credential',
    'The password works: reset it now, end its sessions, and look at its latest sign-ins.',
  ],
  [
    'invalid_credential',
    'The password does not work here; check that it is not in use at other services.',
  ],
  [
    'mitigated_credential',
    'Already dealt with by an integration; check that its owner could sign in again and that sessions are ended.',
  ],
  [
    'ransomleak',
    'Check whether you or a supplier of yours is the victim; if so, start the incident process and preserve evidence.',
  ],
  [
    'document',
    'Check whether you or a supplier of yours is the victim; if so, start the incident process and preserve evidence.',
  ],
  ['lookalike', takeDown],
  ['domain', takeDown],
  [
    'domain_certificate',
    'Check who asked for this certificate; if nobody of yours did, treat the name as hostile.',
  ],
  ['domain_favicon', takeDown],
  ['domain_dns_records', compareRecords],
  ['domain_ip_address', compareRecords],
  ['domain_screenshot', takeDown],
  ['domain_title', takeDown],
  ['domain_whois_rdap', compareRecords],
  ['whois', compareRecords],
  [
    'service',
    'Check that it must be reachable from everywhere; if not, close it, else install its updates.',
  ],
  ['bucket', closeAccess],
  ['bucket_object', closeAccess],
  ['docker_image', checkImage],
  ['docker_repository', checkImage],
  ['driller_source_code', checkImage],
  [
    'source_code_secret',
    'Revoke the secret first, then remove it: whoever has read the code has it.',
  ],
  ['listing', checkOffer],
  ['cc', 'Tell the issuer, who blocks the card; check whether it was used at your shop.'],
  ['cc_bases', 'Tell the issuers of these BINs; check whether the cards were used at your shop.'],
  ['chat_message', readAndAssess],
  ['forum_post', readAndAssess],
  ['forum_topic', readAndAssess],
  ['driller_forum_post', readAndAssess],
  ['driller_forum_topic', readAndAssess],
  ['blog_post', readAndAssess],
  ['paste', readAndAssess],
  [
    'social_media_account',
    'Check whether it is yours; if it passes for you, report it to the platform.',
  ],
])

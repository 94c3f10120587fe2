/** Events from leaked collections. */
import { marked, zoneless, type Draft, type DraftContext } from './draft.ts'
import { giveawayOf } from './giveaway.ts'
import { actorOf, highlightOf, hostOf, passwordOf, postAbout } from './words.ts'

export function leakedCredential({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const identity = `${random.pick(['anna', 'j.doe', 'søren', 'admin'])}${number}@${hostOf(subject)}`
  const password = passwordOf(random)
  return {
    type: 'leaked_credential',
    uid: `leaked_credential/combolists/${number.toString(16).padStart(8, '0')}${random.hex(24)}`,
    severities: ['high', 'medium', 'critical'],
    data: {
      identity_name: identity,
      imported_at: zoneless(createdAtMs),
      password,
      source: { id: 'combolists', name: 'Combolists' },
    },
    highlights: { identity_name: [marked(identity)], password: [password] },
  }
}

export function leak({ random, number, subject, createdAtMs }: DraftContext): Draft {
  return {
    type: 'leak',
    uid: `leak/leaksdb/${number}`,
    severities: ['high', 'critical'],
    data: {
      term: hostOf(subject),
      site_url: 'http://leakbase.example/t/1',
      leaked_at: zoneless(createdAtMs - 3_600_000),
      breached_at: null,
      leaked_credential_count: random.int(1, 5000),
      pii_tags: ['email', 'password', 'phone_number'],
      source: { id: `breach_${number}`, name: 'Online Shop 2026' },
    },
    highlights: { term: [marked(hostOf(subject))] },
  }
}

export function creditCard({ random, number, createdAtMs }: DraftContext): Draft {
  return {
    type: 'cc',
    uid: `cc/bclub/${number}`,
    severities: ['medium', 'high'],
    data: {
      bank: 'Example Bank',
      bin: String(random.int(400_000, 499_999)),
      brand: 'VISA',
      country: 'CH',
      expiration: zoneless(createdAtMs + 31_536_000_000),
      owner: null,
      state_code: null,
      zip: '8001',
      has_cvv: true,
      has_date_of_birth: false,
      has_phone: null,
      has_ssn: false,
    },
    highlights: {},
  }
}

export function paste({ random, number, subject }: DraftContext): Draft {
  const post = postAbout(random, subject)
  const uid = `paste/pastebin/${random.hex(6)}${number}`
  return {
    type: 'paste',
    uid,
    severities: ['low', 'low', 'medium', 'info'],
    data: {
      url: `https://pastebin.example/${random.hex(8)}`,
      title: random.chance(0.3) ? null : 'untitled',
      content: `${post}${giveawayOf(uid, hostOf(subject))}`,
      actor: random.chance(0.5) ? null : actorOf(random),
      expires_at: null,
      syntax: 'text',
    },
    highlights: { content: [highlightOf(post, subject)] },
  }
}

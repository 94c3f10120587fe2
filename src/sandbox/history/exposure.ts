/** Events about what stands open on the internet. */
import { marked, zoneless, type Draft, type DraftContext } from './draft.ts'
import { hostOf } from './words.ts'

/** The model is called `lookalike`, its uid and its filter `domain` (public documentation). */
export function lookalike({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const host = hostOf(subject)
  const domain = `${host.replace('e', '3').replaceAll('.', '-')}-${number}.top`
  return {
    type: 'lookalike',
    uid: `domain/flare/${domain}`,
    severities: ['medium', 'low', 'high'],
    data: {
      domain,
      registered_at: random.chance(0.3) ? null : zoneless(createdAtMs - 86_400_000),
      identifier_domains: [host],
      feed: 'certstream',
      cert_data: {},
      subject: `CN=${domain}`,
      issuer: "C=US, O=Let's Encrypt, CN=R11",
    },
    highlights: { domain: [marked(domain)] },
  }
}

export function service({ random, number, subject }: DraftContext): Draft {
  const port = random.pick([21, 22, 443, 3389, 8080])
  const address = `198.51.100.${random.int(1, 254)}`
  return {
    type: 'service',
    uid: `service/driller_shodan/${address}_${port}_${number}`,
    severities: ['low', 'medium', 'info'],
    data: {
      url: null,
      asn: 'AS64500',
      content: 'HTTP/1.1 200 OK\r\nServer: nginx',
      service: 'https',
      product: 'nginx',
      port,
      ip_address: address,
      organization: 'Example Hosting',
      hostname: `vpn.${hostOf(subject)}`,
      country_code: 'DE',
      vulnerabilities: random.chance(0.4) ? ['CVE-2023-44487', 'CVE-2021-23017'] : [],
    },
    highlights: { hostname: [marked(`vpn.${hostOf(subject)}`)] },
  }
}

export function bucket({ number, subject }: DraftContext): Draft {
  const host = `${hostOf(subject).replaceAll('.', '-')}-backup-${number}.s3.example`
  return {
    type: 'bucket',
    uid: `bucket/grayhat_warfare/${number}`,
    severities: ['medium', 'low'],
    data: { url: `https://${host}/`, bucket: { host, provider: 'aws' } },
    highlights: { 'bucket.host': [marked(host)] },
  }
}

export function bucketObject({ number, subject }: DraftContext): Draft {
  const host = `${hostOf(subject).replaceAll('.', '-')}.s3.example`
  return {
    type: 'bucket_object',
    uid: `bucket_object/grayhat_warfare/${number}`,
    severities: ['low', 'medium', 'info'],
    data: {
      url: `https://${host}/exports/payroll "final" ${number}.xlsx`,
      bucket: { host, provider: 'aws' },
    },
    highlights: { url: [`https://${marked(host)}/exports/payroll`] },
  }
}

export function dockerRepository({ random, number, subject, createdAtMs }: DraftContext): Draft {
  return {
    type: 'docker_repository',
    uid: `docker_repository/dockerhub/acme${number}`,
    severities: ['info', 'low'],
    data: {
      url: `https://hub.example/r/acme${number}`,
      star_count: 0,
      pull_count: random.int(1, 90_000),
      collaborator_count: null,
      last_updated_at: zoneless(createdAtMs),
      last_modified_at: null,
      registered_at: zoneless(createdAtMs - 86_400_000),
    },
    highlights: { description: [marked(subject)] },
  }
}

export function socialMediaAccount({ number, subject }: DraftContext): Draft {
  const username = `${hostOf(subject).split('.')[0]}_support_${number}`
  return {
    type: 'social_media_account',
    uid: `social_media_account/telegram/${username}`,
    severities: ['low', 'medium'],
    data: { url: `https://social.example/${username}`, site: 'telegram', username },
    highlights: { username: [marked(username)] },
  }
}

/** A type that no public list names, and for which the service has no model: the list grows. */
export function unheardOf({ random, number, subject }: DraftContext): Draft {
  return {
    type: random.pick(['mesh_relay', 'satellite_chat']),
    uid: `experimental/darknet/darkchat/example-${number}`,
    severities: ['medium', 'high'],
    data: null,
    highlights: { body: [marked(subject)] },
  }
}

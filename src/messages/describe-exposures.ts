import {
  around,
  codeFact,
  hostIn,
  joined,
  listFact,
  textFact,
  timeFact,
  type Describe,
  type Description,
  type Subject,
} from './description.ts'

/** A service that answers to the whole internet. */
export function describeService(subject: Subject): Description {
  const { event, fields } = subject
  const host = fields.text('hostname', 'ip_address') ?? fields.matched('domains', 'host', 'url')[0]
  const port = fields.text('port')
  const place = host === undefined ? null : joined([host, port], ':')
  const product = fields.text('product', 'service')
  const vulnerabilities = fields.list('vulnerabilities')
  return {
    typeLabel: 'Exposed service',
    headline: place,
    tail: joined(
      [
        around('runs ', product, vulnerabilities.length === 0 ? '' : ','),
        vulnerabilityCount(vulnerabilities.length),
        product === null && vulnerabilities.length === 0 ? around('found by ', event.source) : null,
      ],
      ' ',
    ),
    facts: [
      codeFact('Host', place),
      textFact('Product', product),
      listFact('Vulnerabilities', vulnerabilities),
      codeFact('IP address', fields.text('ip_address')),
      textFact('Service', fields.text('service')),
      textFact('Found by', event.source),
      textFact('Organization', fields.text('organization')),
      textFact('Country', fields.text('country_code')),
      textFact('AS number', fields.text('asn')),
    ],
    content: fields.text('content'),
  }
}

/** A cloud bucket, or a file in one, that anybody can read. */
export function describeBucket(typeLabel: string): Describe {
  return ({ event, fields }) => {
    const address = fields.text('url')
    const host = fields.text('bucket.host') ?? (address === null ? null : hostIn(address))
    const provider = fields.text('bucket.provider') ?? event.source
    const file = address === null ? null : fileIn(address)
    return {
      typeLabel,
      headline: joined([file, around(file === null ? '' : 'in ', host)], ' '),
      tail: around('at ', provider),
      facts: [
        codeFact('Bucket', host),
        codeFact('Address', address),
        textFact('Provider', provider),
      ],
    }
  }
}

/** Source code, an image or a document in which something of ours stands open. */
export function describeCode(typeLabel: string): Describe {
  return ({ event, fields, id }) => {
    const [tag] = [...fields.items('tags'), ...fields.items('tag')]
    const image = joined([tag?.text('repository_name') ?? null, tag?.text('name') ?? null], ':')
    const address = fields.text('url', 'browser_url')
    const repository = fields.text('repository', 'repository_name', 'repo_name') ?? pathIn(address)
    const path = fields.text('code.path', 'path', 'file_name')
    const name = joined([path, around(path === null ? '' : 'in ', image ?? repository)], ' ')
    const author = fields.text('commit.author_name', 'code.commit_name', 'actor.name', 'actor')
    return {
      typeLabel,
      headline: name ?? namedId(id),
      quote: fields.text('title'),
      tail: joined([around('by ', author), around('on ', event.source)], ' '),
      facts: [
        codeFact('Repository', image ?? repository ?? namedId(id)),
        codeFact('File', path),
        textFact('Source', event.source),
        textFact('Author', author),
        textFact('Title', fields.text('title')),
        textFact('Kind of secret', fields.text('secret_type', 'detector', 'secrets_metadata.type')),
        codeFact('Page', address),
        timeFact('Pushed', fields.time('last_pushed_at', 'last_updated_at', 'code.commit_date')),
        codeFact('Digest', fields.text('digest')),
      ],
      content: fields.text('content', 'description'),
    }
  }
}

/** An id that is a name: neither a number nor a digest, which tell a person nothing. */
export function namedId(id: string | null): string | null {
  return id === null || /^[\d_:-]+$|^[\da-f]{12,}$|^[\da-f]{8}-[\da-f-]{27}$/iu.test(id) ? null : id
}

function fileIn(address: string): string | null {
  const path = URL.canParse(address) ? new URL(address).pathname : ''
  const last = path.split('/').at(-1) ?? ''
  try {
    return last === '' ? null : decodeURIComponent(last)
  } catch {
    return last
  }
}

function pathIn(address: string | null): string | null {
  const path = address !== null && URL.canParse(address) ? new URL(address).pathname : ''
  const parts = path.split('/').filter((part) => part !== '' && part !== 'r' && part !== '_')
  return parts.length === 0 ? null : parts.slice(0, 2).join('/')
}

function vulnerabilityCount(count: number): string | null {
  if (count === 0) return null
  return count === 1 ? '1 known vulnerability' : `${count} known vulnerabilities`
}

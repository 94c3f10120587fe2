import {
  around,
  codeFact,
  joined,
  listFact,
  mention,
  textFact,
  type Describe,
  type Description,
  type Subject,
} from './description.ts'

/** A service that answers to the whole internet. */
export function describeService({ fields }: Subject): Description {
  const host = fields.text('hostname', 'ip_address')
  const port = fields.text('port')
  const product = fields.text('product', 'service')
  const vulnerabilities = fields.list('vulnerabilities')
  return {
    typeLabel: 'Exposed service',
    headline: joined(
      [
        joined([joined([host, port], ':'), around('runs ', product)], ' '),
        vulnerabilityCount(vulnerabilities.length),
      ],
      ', ',
    ),
    facts: [
      codeFact('Host', joined([host, port], ':')),
      codeFact('IP address', fields.text('ip_address')),
      textFact('Product', product),
      listFact('Vulnerabilities', vulnerabilities),
      textFact('Service', fields.text('service')),
      textFact('Organization', fields.text('organization')),
      textFact('Country', fields.text('country_code')),
      textFact('AS number', fields.text('asn')),
    ],
    content: fields.text('content'),
  }
}

/** A cloud bucket, or a file in one, that anybody can read. */
export function describeBucket(typeLabel: string): Describe {
  return (subject) => {
    const { event, fields } = subject
    const host = fields.text('bucket.host')
    const provider = fields.text('bucket.provider') ?? event.source
    return {
      typeLabel,
      headline: joined(
        [host ?? fields.text('url') ?? mention(subject), around('at ', provider)],
        ' ',
      ),
      facts: [
        codeFact('Bucket', host),
        textFact('Provider', provider),
        codeFact('Address', fields.text('url')),
      ],
    }
  }
}

function vulnerabilityCount(count: number): string | null {
  if (count === 0) return null
  return count === 1 ? '1 known vulnerability' : `${count} known vulnerabilities`
}

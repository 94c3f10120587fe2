/** Whether an event speaks of what an asset stands for. */
import type { SandboxAsset } from '../monitoring/sandbox-asset.ts'
import { luceneMatcher, parseLucene } from '../search/lucene.ts'
import { phraseFinder } from '../search/words.ts'
import type { Sighting } from './sighting.ts'
import { attributeAsAsset, termOf, textIn } from './term.ts'

type Finder = (sighting: Sighting) => boolean

/** A host may end a sentence, but not go on. */
const hostEnd = String.raw`(?![a-z0-9\-]|\.[a-z0-9])`
/** What is below a host is its own; what merely ends alike is not. */
const hostEdges = ['(?<![a-z0-9_-])', hostEnd] as const
const addressEdges = ['(?<![a-z0-9._%+-])', hostEnd] as const
/** A port may follow. */
const v4Edges = [String.raw`(?<![\d.])`, String.raw`(?!\d|\.\d)`] as const
const v6Edges = ['(?<![0-9a-f:])', '(?![0-9a-f:])'] as const
/** A card number begins with its BIN. */
const binEdges = [String.raw`(?<!\d)`, ''] as const

const nameEdges = [String.raw`(?<![\p{L}\p{N}])`, String.raw`(?![\p{L}\p{N}])`] as const

export function mentionOf(asset: Pick<SandboxAsset, 'type' | 'data' | 'attributes'>): Finder {
  const { type, data, attributes } = asset
  const term = termOf(asset) ?? ''
  switch (type) {
    case 'domain':
      return between(hostEdges, term)
    case 'email':
      return between(addressEdges, term)
    case 'ip':
      return between(term.includes(':') ? v6Edges : v4Edges, term)
    case 'bin':
      return between(binEdges, term)
    case 'secret':
      return ({ document }) => document.text.includes(term)
    case 'search_query':
      return hasQueried(textIn(data, 'search_query'))
    case 'name':
      return data['is_strict'] === true ? between(nameEdges, term) : hasEach(data)
    case 'keyword':
    case 'ransomleak':
    case 'external_id':
    case 'address_data':
    case 'birth_year':
    case 'role':
    case 'phone_number':
    case 'username':
    case 'azure_tenant':
    case 'github_repository':
      return hasWords(term)
    case 'identity': {
      const finders = attributes.map((attribute) => mentionOf(attributeAsAsset(attribute)))
      return (sighting) => finders.some((finds) => finds(sighting))
    }
  }
}

/** Whether words stand in the text one after the other, in whatever case. */
export function hasWords(phrase: string): Finder {
  const finds = phraseFinder(phrase)
  return ({ words }) => finds(words)
}

/** In Lucene's syntax. */
export function hasQueried(query: string): Finder {
  const fits = luceneMatcher(parseLucene(query))
  return ({ document }) => fits(document)
}

/** Both names, anywhere; strictly they stand side by side. */
function hasEach(data: Record<string, unknown>): Finder {
  const finders = ['first_name', 'last_name'].map((key) => hasWords(textIn(data, key)))
  return (sighting) => finders.every((finds) => finds(sighting))
}

function between([before, after]: readonly [string, string], term: string): Finder {
  const escaped = term.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)
  const pattern = new RegExp(before + escaped.replaceAll(/\s+/g, String.raw`\s+`) + after, 'iu')
  return ({ document }) => pattern.test(document.text)
}

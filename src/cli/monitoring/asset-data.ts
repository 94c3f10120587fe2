import { isSection, type Finding, type Rule } from '../../runtime/config-section.ts'
import { nearest } from '../../runtime/nearest.ts'
import { assetTypes, type AssetType } from '../../service/wire/enumerations.ts'

/** What the data of an asset must hold, by its type (facts.md 5); more may stand beside it. */
const fieldsByType: Record<AssetType, readonly string[]> = {
  domain: ['fqdn'],
  name: ['first_name', 'last_name'],
  keyword: ['keyword'],
  github_repository: ['repo_owner', 'repo_name'],
  username: ['username'],
  email: ['email'],
  search_query: ['search_query'],
  bin: ['bin'],
  ip: ['ip'],
  secret: ['secret'],
  azure_tenant: ['tenant_id'],
  identity: ['attributes'],
  ransomleak: ['source', 'id'],
  external_id: ['source', 'id'],
  address_data: ['street', 'city', 'country', 'state'],
  birth_year: ['year'],
  role: ['role'],
  phone_number: ['phone_number'],
}

/** The fields that the asset's type asks for are there, and texts; an identity's is a list. */
export const assetDataRule: Rule = ({ type, data }) => {
  const known = assetTypes.find((word) => word === type)
  if (known === undefined || !isSection(data)) return []
  const fields = fieldsByType[known]
  return fields.flatMap((field) =>
    field === 'attributes' ? attributesProblem(data) : textProblem(field, data, fields),
  )
}

type Data = Readonly<Record<string, unknown>>

function textProblem(field: string, data: Data, fields: readonly string[]): Finding[] {
  const value = data[field]
  if (typeof value === 'string' && value.trim() !== '') return []
  if (field === 'year' && Number.isInteger(value)) return []
  if (value !== undefined) {
    const problem = value === null || value === '' ? 'has no value' : 'not a text'
    return [{ path: ['data', field], problem, remedy: 'write a text, in quotes' }]
  }
  const others = Object.keys(data).filter((key) => !fields.includes(key))
  const meant = nearest(field, others)
  const at = meant === undefined ? ['data'] : ['data', meant]
  const remedy = meant === undefined ? `write ${field} into it` : `did you mean "${field}"?`
  return [{ path: at, problem: `${field} is missing`, remedy }]
}

function attributesProblem({ attributes }: Data): Finding[] {
  if (Array.isArray(attributes) && attributes.length > 0) return []
  const remedy = 'write a list of what identifies it, such as [{type: email, email: a@example.com}]'
  const problem = attributes === undefined ? 'attributes is missing' : 'not a list of attributes'
  return [{ path: attributes === undefined ? ['data'] : ['data', 'attributes'], problem, remedy }]
}

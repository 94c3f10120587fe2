import type { SandboxAsset } from '../monitoring/sandbox-asset.ts'

/** What an asset looks for, as a text could hold it; null: a search query is no such thing. */
export function termOf({
  type,
  data,
  attributes,
}: Pick<SandboxAsset, 'type' | 'data' | 'attributes'>): string | null {
  const of = (key: string): string => textIn(data, key)
  switch (type) {
    case 'domain':
      return of('fqdn')
    case 'azure_tenant':
      return of('tenant_id')
    case 'github_repository':
      return `${of('repo_owner')}/${of('repo_name')}`
    case 'name':
      return `${of('first_name')} ${of('last_name')}`
    case 'identity':
      return attributes[0] ? termOf(attributeAsAsset(attributes[0])) : null
    case 'search_query':
      return null
    case 'ransomleak':
    case 'external_id':
      return of('id')
    case 'address_data':
      return of('street')
    case 'birth_year':
      return String(data['year'])
    case 'role':
    case 'phone_number':
    case 'keyword':
    case 'username':
    case 'email':
    case 'bin':
    case 'ip':
    case 'secret':
      return of(type)
  }
}

/** Empty where there is no text. */
export function textIn(data: Record<string, unknown>, key: string): string {
  const value = data[key]
  return typeof value === 'string' ? value : ''
}

/** An attribute of an identity has a type of its own, and the data of such an asset. */
export function attributeAsAsset(
  attribute: Record<string, unknown>,
): Pick<SandboxAsset, 'type' | 'data' | 'attributes'> {
  return { type: attribute['type'] as SandboxAsset['type'], data: attribute, attributes: [] }
}

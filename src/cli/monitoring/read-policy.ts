import type { WirePolicy } from '../../service/wire/policies.ts'
import type { PolicyContent } from './state-file.ts'

/** A policy as the service gives it, where its type has another name. */
export function readPolicy({ name, policy_type: type, value }: WirePolicy): PolicyContent {
  return { name, type, value: value ?? {} }
}

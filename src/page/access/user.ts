/** Who asks, and what they may. */
import { createHash } from 'node:crypto'
import type { HttpUser } from '../http/access-config.ts'

export interface User {
  readonly name: string
  readonly role: 'read' | 'act'
  /** Whose items, feeds and counts they see. */
  readonly accounts: readonly string[] | 'all'
}

/** Whoever sits at this machine while no users are configured. */
export const localUser: User = { name: 'local', role: 'read', accounts: 'all' }

/** Of routes that are public: sees nothing. */
export const nobody: User = { name: '', role: 'read', accounts: [] }

export function mayAct({ role }: User): boolean {
  return role === 'act'
}

export function seesAccount({ accounts }: User, account: string): boolean {
  return accounts === 'all' || accounts.includes(account)
}

/** A session ends when this changes: name, password, role or accounts. Throws if a file cannot be read. */
export function digestEntry({ name, role, accounts, passwordHash }: HttpUser): string {
  const said = [name, role, accounts, passwordHash?.reveal() ?? null]
  return createHash('sha256').update(JSON.stringify(said)).digest('hex')
}

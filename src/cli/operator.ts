import type { Context } from './context.ts'

/** Who asks, as the system knows them (USER, on Windows USERNAME); undefined where it does not. */
export function operatorName({ env }: Pick<Context, 'env'>): string | undefined {
  const name = (env['USER'] ?? env['USERNAME'] ?? '').replaceAll(/\p{Cc}/gu, '').trim()
  return name === '' ? undefined : name.slice(0, 100)
}

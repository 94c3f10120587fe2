/** What another process, or another task of this one, does between two system calls of the code that is tested. */
import { syncBuiltinESMExports } from 'node:module'
import { onTestFinished, vi } from 'vitest'

/**
 * Does `act` once: of the calls of functions of a built-in module that come next, named in their order, right
 * before the last one.
 */
export function beforeNext<Module extends object>(
  module: Module,
  [name, ...later]: readonly (keyof Module & string)[],
  act: () => void,
): void {
  if (name === undefined) return act()
  const functions = module as Record<string, (...args: unknown[]) => unknown>
  const real = functions[name]!
  const spy = vi.spyOn(functions, name)
  const restore = (): void => {
    spy.mockRestore()
    syncBuiltinESMExports()
  }
  spy.mockImplementation((...args) => {
    restore()
    beforeNext(module, later, act)
    return real(...args)
  })
  syncBuiltinESMExports()
  onTestFinished(restore)
}

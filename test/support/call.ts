/** A client's `call` that a test answers, by the name of the operation. */
import type { CallOptions, CallOperation } from '../../src/upstream/call.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- each test knows the request that it answers
type Request = any

export function callBy(
  answer: (name: string, request: Request, asked: CallOptions) => Promise<unknown>,
): CallOperation {
  return (({ name }: { name: string }, request: Request, asked: CallOptions) =>
    answer(name, request, asked)) as CallOperation
}

/** Answers one operation by `answer`, which may ask `call`; all others by `call`. */
export function callInstead(
  call: CallOperation,
  name: string,
  answer: (request: Request, asked: CallOptions, ask: () => Promise<Request>) => Promise<unknown>,
): CallOperation {
  return ((operation: never, request: Request, asked: CallOptions) => {
    const ask = (): Promise<Request> => call(operation, request as never, asked)
    return (operation as { name: string }).name === name ? answer(request, asked, ask) : ask()
  }) as CallOperation
}

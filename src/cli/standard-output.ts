/** What becomes of standard output in the end: a reader may have seen enough, a disk may be full. */
import type { Streams } from './terminal.ts'

export interface StandardOutput {
  /** The exit code, once all that was written is out; of a command whose results are lost never 0. */
  end(code: number): Promise<number>
}

export function watchOutput({
  output,
  errors,
}: Pick<Streams, 'output' | 'errors'>): StandardOutput {
  let failure: string | undefined
  output.on('error', (error: NodeJS.ErrnoException) => (failure ??= error.code ?? error.message))
  return {
    async end(code) {
      await new Promise<void>((resolve) => void output.write('', () => resolve()))
      if (failure === undefined || failure === readerGone) return code
      errors.write(`standard output cannot be written (${failure}); what it has is not whole\n`)
      return code === 0 ? 1 : code
    },
  }
}

/** Such as `head`, which closes what it needs no longer. */
const readerGone = 'EPIPE'

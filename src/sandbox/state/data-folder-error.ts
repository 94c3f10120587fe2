import { TocsinError } from '../../runtime/errors.ts'

/** The sandbox cannot use its data folder; the message names the file and the way out. */
export class DataFolderError extends TocsinError {
  override readonly name = 'DataFolderError'
  readonly code = 'TOCSIN_SANDBOX'

  constructor(file: string, problem: string, cause?: unknown) {
    const remedy = 'put it back from a copy, or choose another folder with --data'
    super(`the sandbox cannot go on from ${file}: ${problem}; ${remedy}`, { cause })
  }
}

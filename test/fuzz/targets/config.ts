/** Any text as a configuration: it loads, or every mistake says where and what to write, and no secret. */
import { ConfigError } from '../../../src/config/config.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { textOf } from '../engine/bytes.ts'
import { assertThat } from '../engine/target.ts'

const env = {
  URL: 'https://hooks.example.com/the-secret-token',
  KEY: 'the-secret-key',
  SMTP: 'smtp://user:the-secret-password@mail.example.com',
}

export const dictionary = [
  '${URL}',
  '${KEY}',
  '${SMTP}',
  '${KEY:-x}',
  '<<: *a',
  '&a ',
  '*a',
  '\n  ',
]

export function fuzz(data: Uint8Array): void {
  try {
    parseConfig(textOf(data), { file: 'tocsin.yaml', env })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    assertThat(error.mistakes.length > 0, 'refused without a mistake')
    assertThat(!error.message.includes('the-secret'), 'a secret is quoted', error.message)
    for (const mistake of error.mistakes) {
      const { line, column, problem, remedy } = mistake
      const isPlaced = line >= 1 && column >= 1
      const isSaid = problem.trim() !== '' && remedy.trim() !== ''
      assertThat(isPlaced && isSaid, 'a mistake without place or remedy', mistake)
    }
  }
}

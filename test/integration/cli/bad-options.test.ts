/** What is typed wrongly is refused by name, for each command and each of its options. */
import { expect, test } from 'vitest'
import { optionsByCommand } from '../../docs/commands.ts'
import { tocsin, type Ended } from './tocsin.ts'

const commands = await optionsByCommand()
const names = [...commands.keys()]

/** One mistake in few lines, exit code 2, nothing printed and nothing that a terminal acts upon. */
function findFault({ code, out, err }: Ended, said: RegExp): string | undefined {
  if (code !== 2) return `exit code ${code}`
  if (out !== '') return `printed ${out}`
  if (!said.test(err)) return `does not say ${said.source}: ${err}`
  return /(?!\n)\p{Cc}|\u202E|    at /u.test(err) ? `raw: ${JSON.stringify(err)}` : undefined
}

test.each(names)(
  '%s refuses an option that it has not, or asks for one that it needs',
  async (name) => {
    const args = name.split(' ')
    const unknown = await tocsin(...args, '--nonsense\u0007\u202E')
    expect(findFault(unknown, /--nonsense|required option/)).toBeUndefined()
  },
)

test.each(names)('%s refuses each argument that is empty', async (name) => {
  const { out: help } = await tocsin(...name.split(' '), '--help')
  const listed = /^Arguments:\n((?: .*\n)+)/m.exec(help)?.[1] ?? ''
  const given = [...listed.matchAll(/^ {2}(\S+) /gm)].map(() => '')
  if (given.length === 0) return
  expect(
    findFault(
      await tocsin(...name.split(' '), ...given),
      /required option|argument|no \w+ ""; known: /,
    ),
  ).toBeUndefined()
})

test.each(names)('%s refuses an empty value of each option, by its name', async (name) => {
  const args = name.split(' ')
  const faults: string[] = []
  const { out: help } = await tocsin(...args, '--help')
  for (const [, option = ''] of help.matchAll(/^ +(?:-\w, )?(--[a-z-]+) </gm)) {
    const fault = findFault(await tocsin(...args, `${option}=`), new RegExp(option))
    if (fault !== undefined) faults.push(`${option}: ${fault}`)
  }
  expect(faults).toEqual([])
})

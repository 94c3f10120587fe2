import { createRandom, hashOf } from '../random.ts'

const people = ['Anna Keller', 'José Prado', 'Mei Tanaka', 'Søren Holm'] as const

/** What one in two pastes gives away at its end: a person, a repository, an Azure tenant. */
export function giveawayOf(uid: string, host: string): string {
  const random = createRandom(hashOf(uid))
  if (random.chance(0.5)) return ''
  const owner = random.pick(people)
  const repository = `${host.split('.')[0]}/infra-${random.int(1, 99)}`
  const tenant = [8, 4, 4, 4, 12].map((digits) => random.hex(digits)).join('-')
  return [
    '',
    `# owner: ${owner}`,
    `git clone https://github.com/${repository}.git`,
    `AZURE_TENANT_ID=${tenant}`,
  ].join('\n')
}

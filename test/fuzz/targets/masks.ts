/** A labelled secret is masked whatever stands around it, and masking twice is masking once. */
import { maskDetail, maskIdentity, maskTag, maskText } from '../../../src/masking/masking.ts'
import { bytesOf, type Bytes } from '../engine/bytes.ts'
import { assertThat } from '../engine/target.ts'

export const dictionary = [
  'password: ',
  'token=',
  '"secret":"',
  'https://a:b@',
  '-----BEGIN',
  'joe@example.com:',
  '<mark>',
  'INSERT INTO ',
  'eyJ',
  'AKIA',
]

const labels = ['password: ', 'Passwort = ', 'api_key: ', 'contraseña: ', 'DB_PASSWORD=', 'pwd=']
const secretCharacters = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789!%*+_~'

export function fuzz(data: Uint8Array): void {
  const bytes = bytesOf(data)
  const isDump = bytes.byte() % 2 === 0
  const label = bytes.pick(labels)
  const secret = secretFrom(bytes)
  const before = bytes.text()
  const after = bytes.text()
  for (const mask of [maskTag, maskIdentity, (text: string) => maskText(text, isDump)]) {
    const masked = mask(before)
    assertThat(mask(masked) === masked, 'masked twice is another text', { before, masked })
  }
  if (before.includes(secret) || after.includes(secret)) return
  const text = `${before}\n${label}${secret}\n${after}`
  const masked = maskText(text, isDump)
  assertThat(!masked.includes(secret), 'a labelled secret is visible', { text, masked })
  const detail = JSON.stringify(maskDetail({ [before]: text, password: secret, list: [text] }))
  assertThat(!detail.includes(secret), 'a secret is visible in a detail', { text, detail })
}

/** 12 characters of at least two kinds; one that begins with `$` would read as a variable, which stays. */
function secretFrom(bytes: Bytes): string {
  const characters = Array.from(
    { length: 11 },
    () => secretCharacters[bytes.byte() % secretCharacters.length],
  )
  return `${characters.join('')}7`
}

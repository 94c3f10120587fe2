import { expect, test } from 'vitest'
import { hashPassword, isPassword, passwordHashProblem } from '../../../src/lib/password-hash.ts'

const password = 'a whole sentence, ähnlich'

test('a hash names its parameters, differs each time, and fits its password alone', async () => {
  const [one, other] = await Promise.all([hashPassword(password), hashPassword(password)])
  expect(one).toMatch(/^\$scrypt\$ln=17,r=8,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  expect(other).not.toBe(one)
  expect(passwordHashProblem(one)).toBeUndefined()
  // a keyboard may send an accent as two characters
  expect(await isPassword(password.normalize('NFD'), one)).toBe(true)
  expect(await isPassword(`${password}.`, one)).toBe(false)
})

test('a hash by another program from known parameters is taken', async () => {
  // Python: hashlib.scrypt(b'correct horse battery', salt=bytes(range(16)), n=2**17, r=8, p=1,
  // maxmem=2**28, dklen=32)
  const hash =
    '$scrypt$ln=17,r=8,p=1$AAECAwQFBgcICQoLDA0ODw$r17NvsAt3wR6PfK0lC4hewtpyA/TJ24ZI6u+DRyA6ok'
  expect(await isPassword('correct horse battery', hash)).toBe(true)
})

const salt = 'AAECAwQFBgcICQoLDA0ODw'
const rest = 'Kx7260dq3uxMuchnbKRGuEpSjwNbcnk6Q4XHmTGg7Qs'

test.each([
  ['', 'no hash of a password'],
  ['hunter2', 'no hash of a password'],
  ['$2b$12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW', 'no hash of a password'],
  [`$scrypt$ln=14,r=8,p=1$${salt}$${rest}`, 'other parameters'],
  [`$scrypt$ln=22,r=8,p=1$${salt}$${rest}`, 'other parameters'],
  [`$scrypt$ln=17,r=8,p=1$${salt}$`, 'cut off'],
  [`$scrypt$ln=17,r=8,p=1$$${rest}`, 'cut off'],
  [`$scrypt$ln=17,r=8,p=1$${salt}$${rest}=`, 'cut off'],
  [`$scrypt$ln=17,r=8,p=1$${salt}$${rest}$more`, 'cut off'],
])('%s is refused', (written, problem) => {
  expect(passwordHashProblem(written)).toContain(problem)
})

test.each(['hunter2', `$scrypt$ln=17,r=8,p=1$${salt}$`])('%s never fits', async (written) => {
  expect(await isPassword('hunter2', written)).toBe(false)
})

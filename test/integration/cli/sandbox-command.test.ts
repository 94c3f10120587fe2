import { expect, test } from 'vitest'
import { startTocsin, tocsin } from './tocsin.ts'

const secret = 'whsec_cmVoZWFyc2FsLW9ubHktbm90LWEtc2VjcmV0'

test('the sandbox takes a webhook secret that stays over its restarts', async () => {
  const ports = ['--port', '0', '--smtp-port', '0']
  const { child, says, ended } = startTocsin('sandbox', ...ports, '--webhook-secret', secret)
  await says(`secret: ${secret}\n`)
  child.kill('SIGTERM')
  expect(await ended).toMatchObject({ code: 0, err: '' })
})

test.each([secret.replace('whsec_', ''), 'whsec_dG9vIHNob3J0', 'whsec_no base64'])(
  'it refuses %s as a webhook secret',
  async (wrong) => {
    const { code, err } = await tocsin('sandbox', '--webhook-secret', wrong)
    expect(code).toBe(2)
    expect(err).toContain('Write whsec_ and 24 to 64 bytes in base64.')
  },
)

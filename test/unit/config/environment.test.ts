import { expect, test } from 'vitest'
import { ConfigError, logLevel } from '../../../src/config/config.ts'

test('the log level is info unless the environment says otherwise', () => {
  expect(logLevel({})).toBe('info')
  expect(logLevel({ LOG_LEVEL: '' })).toBe('info')
  expect(logLevel({ LOG_LEVEL: 'debug' })).toBe('debug')
})

test('an unknown log level is a mistake that names the nearest', () => {
  const load = (): unknown => logLevel({ LOG_LEVEL: 'debgu' })
  expect(load).toThrow(ConfigError)
  expect(load).toThrow('environment LOG_LEVEL: not a log level; did you mean "debug"?')
})

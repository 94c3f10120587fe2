import { expect, test } from 'vitest'
import { findTreatment, secretKind } from '../../../src/masking/secret-names.ts'

test.each([
  ['password', 'secret'],
  ['userPassword', 'secret'],
  ['DB_PASS', 'secret'],
  ['PWDHash', 'secret'],
  ['Contraseña', 'secret'],
  ['CONTRASENA', 'secret'],
  ['HASŁO', 'secret'],
  ['ŞİFRE', 'secret'],
  ['mein-kennwort2', 'secret'],
  ['smtppass', 'secret'],
  ['secretary', null],
  ['pass_phrase_x', 'secret'],
  ['api_key', 'secret'],
  ['my-api-key-2', 'secret'],
  ['tokenization', null],
  ['token', 'secret'],
  ['token2', 'secret'],
  ['refreshTokens', 'secret'],
  ['nt_hash', 'secret'],
  ['cvv', 'secret'],
  ['cookie', 'cookie'],
  ['set-cookie', 'cookie'],
  ['setcookie', 'cookie'],
  ['passwordCookie', 'cookie'],
  ['session_id', 'secret'],
  ['_deploy_key_', 'secret'],
  ['losenord', 'secret'],
  ['haslo', 'secret'],
  ['jelszo', 'secret'],
  ['şıfre', 'secret'],
  ['userpassing', null],
  ['blue_monkey', null],
  ['my_keyboard', null],
  ['deploy_key', 'secret'],
  ['ssh.keys', 'secret'],
  ['github_pat', 'secret'],
  ['key', null],
  ['keys', null],
  ['pat', null],
  ['primary_key', null],
  ['known_password_id', null],
  ['authorization_server', null],
  ['hash_type', null],
  ['has_password', null],
  ['has', null],
  ['id', null],
  ['secret_service', null],
  ['palabra clave', null],
  ['name', null],
  ['', null],
  [`password${'x'.repeat(192)}`, 'secret'],
  [`password${'x'.repeat(193)}`, null],
])('the field %j holds a secret of the kind %j', (name, kind) => {
  expect(secretKind(name)).toBe(kind)
  expect(secretKind(name)).toBe(kind) // from memory
})

test.each(
  '密码 密碼 口令 密钥 密鑰 パスワード パス 暗証番号 비밀번호 비번 암호 패스워드 รหัสผ่าน'.split(' '),
)('%s is a word for a password, alone and at the end of another, and not before one', (word) => {
  expect(secretKind(word)).toBe('secret')
  expect(secretKind(`登录${word}`)).toBe('secret')
  expect(secretKind(`${word}登录`)).toBeNull()
})

test.each([
  ['password', 'masked'],
  ['user', 'id'],
  ['credentials.password', 'masked'],
  ['password.3', 'masked'],
  ['password.user', 'masked'],
  ['password.cookie', 'masked'],
  ['cookie', 'cookie'],
  ['cookies.0', 'cookie'],
  ['cookies.[0]', 'cookie'],
  ['cookies.host', 'of cookie'],
  ['cookies.hostKey', 'of cookie'],
  ['cookies.host.path', 'of cookie'],
  ['cookies.value', 'hidden'],
  ['cookies.host.value', 'hidden'],
  ['cookies.value.host', 'hidden'],
  ['user.0', 'id'],
  ['x1.password', 'masked'],
  ['cookies.a1', 'hidden'],
  ['cookies.1a', 'hidden'],
  ['user.id', 'id'],
  ['request_id', 'id'],
  ['file.sha256', 'id'],
  ['session_id', 'masked'],
  ['idea', 'shown'],
])('what stands under %j is %s', (path, treatment) => {
  expect(findTreatment(path)).toBe(treatment)
})

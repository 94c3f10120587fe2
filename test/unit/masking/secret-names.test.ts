import { expect, test } from 'vitest'
import {
  holdsDigits,
  isPlural,
  labelAt,
  secretKind,
  findTreatment,
} from '../../../src/masking/secret-names.ts'

test.each([
  ['password', 'phrase'],
  ['userPassword', 'phrase'],
  ['DB_PASS', 'phrase'],
  ['PWDHash', 'phrase'],
  ['Contraseña', 'phrase'],
  ['CONTRASENA', 'phrase'],
  ['HASŁO', 'phrase'],
  ['ŞİFRE', 'phrase'],
  ['mein-kennwort2', 'phrase'],
  ['smtppass', 'phrase'],
  ['secretary', null],
  ['pass_phrase_x', 'phrase'],
  ['api_key', 'token'],
  ['my-api-key-2', 'token'],
  ['tokenization', null],
  ['token', 'token'],
  ['token2', 'token'],
  ['refreshTokens', 'token'],
  ['nt_hash', 'token'],
  ['cvv', 'token'],
  ['cookie', 'cookie'],
  ['set-cookie', 'cookie'],
  ['setcookie', 'cookie'],
  ['passwordCookie', 'cookie'],
  ['session_id', 'token'],
  ['_deploy_key_', 'token'],
  ['losenord', 'phrase'],
  ['haslo', 'phrase'],
  ['jelszo', 'phrase'],
  ['şıfre', 'phrase'],
  ['userpassing', null],
  ['blue_monkey', null],
  ['my_keyboard', null],
  ['deploy_key', 'token'],
  ['ssh.keys', 'token'],
  ['github_pat', 'token'],
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
  [`password${'x'.repeat(192)}`, 'phrase'],
  [`password${'x'.repeat(193)}`, null],
])('the field %j holds a secret of the kind %j', (name, kind) => {
  expect(secretKind(name)).toBe(kind)
  expect(secretKind(name)).toBe(kind) // from memory
})

test.each(
  '密码 密碼 口令 密钥 密鑰 パスワード パス 暗証番号 비밀번호 비번 암호 패스워드 รหัสผ่าน'.split(' '),
)('%s is a word for a password, alone and at the end of another, and not before one', (word) => {
  expect(secretKind(word)).toBe('phrase')
  expect(secretKind(`登录${word}`)).toBe('phrase')
  expect(secretKind(`${word}登录`)).toBeNull()
})

test.each(
  '用户名 用戶名 账号 帳號 帐号 邮箱 郵箱 网址 主机 登录名 ユーザー名 ユーザー ログイン アカウント メール 아이디 사용자 계정 이메일'.split(
    ' ',
  ),
)('%s is a label of a login or a place, alone and at the end of another', (word) => {
  expect(labelAt([word])).toEqual({ kind: 'context', weak: false })
  expect(labelAt([`的${word}`])).toEqual({ kind: 'context', weak: false })
  expect(labelAt([`${word}的的`])).toBeNull()
})

test.each([
  ['password', 'masked'],
  ['user', 'shown'],
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
  ['user.0', 'shown'],
  ['x1.password', 'masked'],
  ['cookies.a1', 'hidden'],
  ['cookies.1a', 'hidden'],
])('what stands under %j is %s', (path, treatment) => {
  expect(findTreatment(path)).toBe(treatment)
})

test.each([
  [['password'], { kind: 'phrase', weak: false }],
  [['secret'], { kind: 'phrase', weak: true }],
  [['client_secret'], { kind: 'phrase', weak: false }],
  [['token'], { kind: 'token', weak: true }],
  [['the', 'token'], { kind: 'token', weak: true }],
  [['api', 'key'], { kind: 'token', weak: false }],
  [['the', 'API', 'key'], { kind: 'token', weak: false }],
  [['security', 'code'], { kind: 'token', weak: false }],
  [['mot', 'de', 'passe'], { kind: 'phrase', weak: false }],
  [['le', 'mot', 'de', 'passe'], { kind: 'phrase', weak: false }],
  [['key', 'content'], { kind: 'phrase', weak: false }],
  [['seed', 'phrase'], { kind: 'phrase', weak: false }],
  [['seedphrase'], { kind: 'phrase', weak: false }],
  [['palabra', 'clave'], null],
  [['la', 'palabra', 'clave'], null],
  [['clave'], { kind: 'phrase', weak: true }],
  [['hash'], null],
  [['file', 'hash'], null],
  [['seed'], null],
  [['login'], { kind: 'context', weak: false }],
  [['Benutzer-Name'], { kind: 'context', weak: false }],
  [['user_name'], { kind: 'context', weak: false }],
  [['x_host'], { kind: 'context', weak: false }],
  [['hosted'], null],
  [['my', '用户名'], { kind: 'context', weak: false }],
  [['file_hash'], null],
  [['apikey', ''], null],
  [['palabraclave'], null],
  [['primary', 'key'], null],
  [['hello'], null],
  [['123'], null],
  [['api', '2'], null],
  [[], null],
])('the label %j announces %j', (words, label) => {
  expect(labelAt(words)).toEqual(label)
  expect(labelAt(words)).toEqual(label) // from memory
})

test.each([
  ['pin', true],
  ['card_cvv', true],
  ['security code', true],
  ['backupCodes', true],
  ['pin_hint', false],
  ['pinned', false],
  ['token', false],
])('of %j only digits are a secret: %j', (name, expected) => {
  expect(holdsDigits(name)).toBe(expected)
})

test.each([
  ['passwords', true],
  ['Passwörter', true],
  ['PASSWOERTER', true],
  ['пароли', true],
  ['паролей и', true],
  ['паролов', true],
  ['password', false],
  ['pass', false],
  ['db_PASS', false],
  ['credentials', false],
  ['passes', true],
  ['passwords x', false],
  ['credentials by users', true],
])('%j tells of more than one: %j', (name, expected) => {
  expect(isPlural(name)).toBe(expected)
})

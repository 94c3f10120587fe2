/** What stands between ⟦ and ⟧ is found in the text without them, and nothing else. */
import { expect, test } from 'vitest'
import { shapeSpans } from '../../../src/masking/secret-shapes.ts'
import { markSpans } from '../../support/marked-spans.ts'

test.each([
  'paid ⟦4556 7375 8689 9855⟧ now',
  '⟦4556-7375-8689-9855⟧',
  '4556 7375-8689 9855',
  '4556 7375 8689 9856',
  'card: ⟦4556737586899855⟧',
  'card number = "⟦5500000000000004⟧"',
  'cc: ⟦371449635398431⟧',
  'card: 455673758689985',
  'CARD: ⟦4556737586899855⟧',
  '⟦4111111111111111⟧|12|2026|⟦123⟧',
  '⟦4111111111111111⟧ 12/26 ⟦1234⟧',
  '14111111111111111111111|12|26|123',
  '4111111111111111|12|26|12345',
  '⟦4111111111111⟧|1|26|⟦123⟧',
])('a payment card is one by its sum, its groups or what follows: %j', (text) => {
  expect(markSpans(shapeSpans, text)).toBe(text)
})

test.each([
  '-----BEGIN RSA PRIVATE KEY-----⟦\nMIIE\n⟧-----END RSA PRIVATE KEY-----\nx',
  '-----BEGIN RSA PRIVATE KEY-----⟦\nMIIE⟧',
  'a -----BEGIN RSA PRIVATE KEY-----⟦x⟧-----END RSA PRIVATE KEY----- b -----BEGIN RSA PRIVATE KEY-----⟦y⟧-----END RSA PRIVATE KEY----- c',
  '⟦MIIE\nABCD\n⟧-----END RSA PRIVATE KEY----- x',
  'the words\n⟦MIIE\nABCD=\n⟧-----END RSA PRIVATE KEY-----',
  '⟦MI⟧-----END RSA PRIVATE KEY-----',
  '⟦MI⟧-----END RSA PRIVATE KEY-----\n-----BEGIN RSA PRIVATE KEY-----⟦x⟧-----END RSA PRIVATE KEY-----',
  '⟦MIIE\r\nABCD\r\n⟧-----END RSA PRIVATE KEY-----',
  `x\n⟦${'MIIE\n'.repeat(4000)}⟧-----END RSA PRIVATE KEY-----`,
  `${'MIIE\n'.repeat(10)}⟦${'MIIE\n'.repeat(4000)}⟧-----END RSA PRIVATE KEY-----`,
  '-----BEGIN RSA PRIVATE KEY-----⟦\na\n-----BEGIN RSA PRIVATE KEY-----\nb\n-----END RSA PRIVATE KEY----- x ⟧-----END RSA PRIVATE KEY-----',
  '-----BEGIN PRIVATE KEY-----⟦a⟧-----END PRIVATE KEY-----\n-----BEGIN PRIVATE KEY-----⟦\n-----BEGIN PRIVATE KEY-----\nb\n⟧-----END PRIVATE KEY-----\nthe words between\n-----BEGIN PRIVATE KEY-----⟦c⟧-----END PRIVATE KEY-----',
  'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n⟦ABCD\n⟧-----END RSA PRIVATE KEY-----',
  '⟦AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\nABCD\n⟧-----END RSA PRIVATE KEY-----',
  '-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----',
  'Private-Lines: 2\n⟦AAAA\nBBBB\n⟧Private-MAC: x',
  'Private-Lines: 2\r\n⟦AAAA\nBBBB⟧',
  String.raw`Private-Lines: 2\n⟦AA\n⟧Private-MAC`,
])('a private key is hidden as far as the text shows it: %j', (text) => {
  expect(markSpans(shapeSpans, text)).toBe(text)
})

const hex = (length: number): string => 'ab12'.repeat(length).slice(0, length)
const capitals = (length: number): string => 'AB2C'.repeat(length).slice(0, length)

/** Each as short as its shape allows, so that a cut leaves none of it in clear. */
test.each([
  `⟦AKIA${capitals(12)}⟧`,
  `⟦ABSK${hex(40)}⟧`,
  '⟦ghp_abcdefghijkl⟧ x',
  'xghp_abcdefghijkl',
  '⟦github_pat_abcdefghijkl⟧',
  '⟦glpat-abcdefghijkl.x⟧',
  '⟦GR1348941abcdefghijkl⟧',
  '⟦xoxb-1234567890⟧',
  '⟦xapp-1-1234567890⟧',
  '⟦sk_live_abcdefghijkl⟧',
  '⟦whsec_abcdefghijkl⟧',
  `⟦AIza${hex(20)}⟧`,
  `⟦ya29.${hex(20)}⟧`,
  '⟦GOCSPX-abcdefghijkl⟧',
  `⟦npm_${hex(16)}⟧`,
  `⟦pypi-${hex(30)}⟧`,
  `⟦rubygems_${hex(20)}⟧`,
  '⟦dckr_pat_abcdefghijkl⟧',
  `⟦sk-proj-${hex(20)}⟧`,
  `⟦hf_${hex(20)}⟧`,
  `⟦pplx-${hex(20)}⟧`,
  `⟦gsk_${hex(20)}⟧`,
  `⟦SK${hex(32)}⟧`,
  '⟦SG.abcdefghijkl.x⟧',
  `⟦key-${hex(32)}⟧`,
  `⟦${hex(32)}-us1⟧`,
  `⟦xkeysib-${hex(20)}-x⟧`,
  `⟦EAAA${hex(22)}⟧`,
  `⟦shpat_${hex(16)}⟧`,
  `⟦dop_v1_${hex(20)}⟧`,
  `⟦dapi${hex(32)}-2⟧`,
  `⟦glsa_${hex(20)}⟧`,
  `⟦hvs.${hex(20)}⟧`,
  `⟦${hex(14)}.atlasv1.${hex(20)}⟧`,
  `⟦dp.pt.${hex(20)}⟧`,
  `⟦dt0c01.${capitals(24)}.A⟧`,
  `⟦PMAK-${hex(20)}-a⟧`,
  `⟦lin_api_${hex(16)}⟧`,
  `⟦ntn_${hex(40)}⟧`,
  `⟦pul-${hex(20)}⟧`,
  `⟦pscale_tkn_${hex(16)}⟧`,
  `⟦sbp_${hex(20)}⟧`,
  `⟦sntrys_${hex(20)}⟧`,
  `⟦NRAK-${capitals(20)}⟧`,
  `⟦pat${hex(14)}.${hex(20)}⟧`,
  `⟦ATATT3${hex(20)}⟧`,
  `⟦HRKU-${hex(20)}⟧`,
  `⟦EAAC${hex(40)}⟧`,
  `⟦LTAI${hex(16)}⟧`,
  `⟦ops_eyJ${hex(20)}⟧`,
  `⟦A3-${capitals(6)}-${capitals(5)}-${capitals(5)}-${capitals(5)}⟧`,
  `⟦AGE-SECRET-KEY-1${capitals(20)}⟧`,
  `⟦AKCp${hex(40)}⟧`,
  `⟦oy2${hex(43)}⟧`,
  `⟦sha256~${hex(20)}⟧`,
  `⟦ab12Q~${hex(20)}⟧`,
  `⟦12345678:AA${hex(30)}⟧`,
  `⟦M${hex(23)}.${hex(6)}.${hex(27)}⟧`,
  `⟦eyJ${hex(14)}⟧`,
  `⟦xprv${'ab12'.repeat(15)}⟧`,
  '⟦$1$abcdefgh⟧',
  `⟦bcrypt_sha256$${hex(16)}⟧`,
  `⟦{SSHA}${hex(16)}⟧`,
  `joe::D:⟦${hex(16)}:${hex(32)}:${hex(8)}⟧`,
  `joe:500:⟦${hex(32)}:${hex(32)}⟧:`,
  'https://api.telegram.org/bot⟦12345678:abc⟧',
  'hooks.slack.com/services/⟦abcdefgh⟧ hooks.slack.com/services/⟦ijklmnop⟧',
])('a token is known by its shape: %j', (text) => {
  expect(markSpans(shapeSpans, text)).toBe(text)
})

test('of a key, and of nothing else, no character is shown', () => {
  const hidden = (text: string): unknown[] => shapeSpans(text).map((span) => span.hidden)
  const [begin, end] = ['-----BEGIN PRIVATE KEY-----', '-----END PRIVATE KEY-----']
  expect(hidden(`${begin}x${end} ${begin}`)).toEqual([true, true])
  expect(hidden(`AB\n${end}`)).toEqual([true])
  expect(hidden('Private-Lines: 2\nAAAA')).toEqual([true])
  expect(hidden('4111111111111111|12|26|123')).toEqual([undefined, undefined])
})

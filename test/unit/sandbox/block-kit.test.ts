import { expect, test } from 'vitest'
import { findSlackError } from '../../../src/sandbox/receivers/slack-receiver.ts'

const long = (length: number): string => 'x'.repeat(length)
const section = (text: string): object => ({ type: 'section', text: { type: 'mrkdwn', text } })
const header = (text: string): object => ({ type: 'header', text: { type: 'plain_text', text } })
const pre = (text: string): object => ({
  type: 'rich_text',
  elements: [{ type: 'rich_text_preformatted', elements: [{ type: 'text', text }] }],
})
const many = <T>(count: number, of: T): T[] => Array.from({ length: count }, () => of)
const word = { type: 'plain_text', text: 'x' }

test.each([
  ['text alone', { text: 'hello' }],
  ['a full message', { text: 'a', blocks: [header('h'), section('s'), pre('p')] }],
  ['a header of 150', { text: 'a', blocks: [header(long(150))] }],
  ['a section of 3,000', { text: 'a', blocks: [section(long(3000))] }],
  ['fifty blocks', { text: 'a', blocks: many(50, section('x')) }],
  ['ten fields', { text: 'a', blocks: [{ type: 'section', fields: many(10, word) }] }],
  ['ten context elements', { text: 'a', blocks: [{ type: 'context', elements: many(10, word) }] }],
])('Slack takes %s', (_name, message) => {
  expect(findSlackError(message)).toBeNull()
})

test.each([
  ['no object', 'text', 'invalid_payload'],
  ['nothing to say', {}, 'no_text'],
  ['a text over 40,000', { text: long(40_001) }, 'msg_too_long'],
  ['a header of 151', { text: 'a', blocks: [header(long(151))] }, 'invalid_blocks'],
  ['a section of 3,001', { text: 'a', blocks: [section(long(3001))] }, 'invalid_blocks'],
  ['an empty section', { text: 'a', blocks: [{ type: 'section' }] }, 'invalid_blocks'],
  ['51 blocks', { text: 'a', blocks: many(51, section('x')) }, 'invalid_blocks'],
  [
    'eleven fields',
    { text: 'a', blocks: [{ type: 'section', fields: many(11, word) }] },
    'invalid_blocks',
  ],
  [
    'a field of 2,001',
    { text: 'a', blocks: [{ type: 'section', fields: [{ ...word, text: long(2001) }] }] },
    'invalid_blocks',
  ],
  [
    'eleven context elements',
    { text: 'a', blocks: [{ type: 'context', elements: many(11, word) }] },
    'invalid_blocks',
  ],
  ['an unknown block', { text: 'a', blocks: [{ type: 'marquee' }] }, 'invalid_blocks'],
  [
    'two blocks of one id',
    { text: 'a', blocks: many(2, { ...header('h'), block_id: 'b' }) },
    'invalid_blocks',
  ],
  [
    'blocks of more than 13,200 characters',
    { text: 'a', blocks: many(5, section(long(2700))) },
    'msg_blocks_too_long',
  ],
])('Slack refuses %s', (_name, message, error) => {
  expect(findSlackError(message)).toBe(error)
})

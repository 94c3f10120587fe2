/** Mutants of the Lua scripts that Redis runs (5.1), by their syntax tree. */
import { parse } from 'luaparse'
import { type Change, type Mutant, otherNumbers, toMutants } from './mutant.ts'

interface Node {
  type: string
  range: [start: number, end: number]
  [key: string]: unknown
}

/** Throws where the text cannot be parsed. */
export function parseLua(text: string): Node {
  const options = { luaVersion: '5.1', ranges: true, comments: false } as const
  return parse(text, { ...options, encodingMode: 'none' }) as unknown as Node
}

export function mutantsOfLua(file: string, text: string): Mutant[] {
  const changes: Change[] = []
  visit(parseLua(text), text, changes)
  return toMutants(file, text, changes)
}

function visit(node: Node, text: string, changes: Change[]): void {
  if (isArgument(node, text)) return
  changes.push(...(rules[node.type] ?? []).flatMap((rule) => rule(node, text)))
  for (const child of childrenOf(node)) visit(child, text, changes)
}

/** `KEYS[1]`, `ARGV[2]`: another place would be caught by whatever runs the script at all. */
function isArgument(node: Node, text: string): boolean {
  return /^(?:KEYS|ARGV)\[\d+\]$/.test(textOf(node, text))
}

function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter(
      (value): value is Node => value !== null && typeof value === 'object' && 'type' in value,
    )
}

type Rule = (node: Node, text: string) => Change[]

const rules: Record<string, Rule[]> = {
  BinaryExpression: [swapOperator],
  LogicalExpression: [swapOperator],
  UnaryExpression: [dropNegation],
  IfClause: [forceCondition],
  ElseifClause: [forceCondition],
  WhileStatement: [neverLoop],
  NumericLiteral: [changeNumber],
  BooleanLiteral: [changeBoolean],
  StringLiteral: [changeText],
  CallStatement: [dropCall],
  AssignmentStatement: [dropAssignment],
  ReturnStatement: [dropReturn],
  BreakStatement: [dropBreak],
  TableConstructorExpression: [dropEntries],
  CallExpression: [swapCalled, dropPairs],
}

function replace(operator: string, { range }: Node, after: string): Change {
  return { operator, start: range[0], end: range[1], after }
}

function textOf({ range }: Node, text: string): string {
  return text.slice(...range)
}

const swaps: Record<string, [kind: string, operator: string]> = {
  '<': ['comparison', '<='],
  '<=': ['comparison', '<'],
  '>': ['comparison', '>='],
  '>=': ['comparison', '>'],
  '==': ['comparison', '~='],
  '~=': ['comparison', '=='],
  '+': ['arithmetic', '-'],
  '-': ['arithmetic', '+'],
  '*': ['arithmetic', '/'],
  '/': ['arithmetic', '*'],
  '%': ['arithmetic', '*'],
  and: ['logic', 'or'],
  or: ['logic', 'and'],
}

/** The whole expression is the change, so that its name says where in its line it stands. */
function swapOperator(node: Node, text: string): Change[] {
  const [kind, swapped] = swaps[String(node['operator'])] ?? []
  if (kind === undefined || swapped === undefined) return []
  const [left, right] = [node['left'] as Node, node['right'] as Node]
  const between = text.slice(left.range[1], right.range[0])
  const operator = between.replace(String(node['operator']), swapped)
  const before = text.slice(node.range[0], left.range[1])
  const after = text.slice(right.range[0], node.range[1])
  return [replace(kind, node, before + operator + after)]
}

function dropNegation(node: Node, text: string): Change[] {
  if (node['operator'] !== 'not') return []
  return [replace('condition', node, textOf(node['argument'] as Node, text))]
}

function forceCondition(node: Node): Change[] {
  const condition = node['condition'] as Node
  return ['true', 'false'].map((forced) => replace('condition', condition, forced))
}

function neverLoop(node: Node): Change[] {
  return [replace('condition', node['condition'] as Node, 'false')]
}

function changeNumber(node: Node): Change[] {
  return otherNumbers(Number(node['value'])).map((other) => replace('number', node, String(other)))
}

function changeBoolean(node: Node): Change[] {
  return [replace('boolean', node, String(node['value'] !== true))]
}

/** Commands, their options and bounds that have a counterpart; a key or field becomes another one. */
const counterparts: Record<string, string> = {
  ZRANGE: 'ZREVRANGE',
  ZREVRANGE: 'ZRANGE',
  ZRANGEBYSCORE: 'ZREVRANGEBYSCORE',
  ZREVRANGEBYSCORE: 'ZRANGEBYSCORE',
  ZPOPMIN: 'ZPOPMAX',
  ZPOPMAX: 'ZPOPMIN',
  LPUSH: 'RPUSH',
  RPUSH: 'LPUSH',
  LPOP: 'RPOP',
  RPOP: 'LPOP',
  INCR: 'DECR',
  DECR: 'INCR',
  INCRBY: 'DECRBY',
  DECRBY: 'INCRBY',
  HSET: 'HSETNX',
  HSETNX: 'HSET',
  SETNX: 'SET',
  PEXPIRE: 'EXPIRE',
  PX: 'EX',
  NX: 'XX',
  XX: 'NX',
  GT: 'LT',
  LT: 'GT',
  '-inf': '+inf',
  '+inf': '-inf',
}

function changeText(node: Node, text: string): Change[] {
  const quoted = textOf(node, text)
  const content = quoted.slice(1, -1)
  const other = counterparts[content]
  if (other !== undefined) return [replace('redis', node, `'${other}'`)]
  if (content === '(') return [replace('redis', node, `''`)]
  if (!/^[a-z][\w:.-]*$/.test(content)) return []
  return [replace('text', node, `'${content}_'`)]
}

function dropCall(node: Node): Change[] {
  return [replace('call', node, '')]
}

function dropAssignment(node: Node): Change[] {
  return [replace('assignment', node, '')]
}

/** A bare `return`: what comes after it runs as well. */
function dropReturn(node: Node): Change[] {
  return (node['arguments'] as Node[]).length === 0 ? [replace('exit', node, '')] : []
}

function dropBreak(node: Node): Change[] {
  return [replace('exit', node, '')]
}

const neighbours: Record<string, string> = {
  'math.min': 'math.max',
  'math.max': 'math.min',
  'math.floor': 'math.ceil',
  'math.ceil': 'math.floor',
}

function swapCalled(node: Node, text: string): Change[] {
  const base = node['base'] as Node
  const other = neighbours[textOf(base, text)]
  if (other === undefined) return []
  return [replace('order', node, other + text.slice(base.range[1], node.range[1]))]
}

/** Each entry of a table with its comma. */
function dropEntries(node: Node, text: string): Change[] {
  const fields = node['fields'] as Node[]
  return fields.map(({ range: [start, end] }) => {
    const comma = /^\s*,/.exec(text.slice(end, node.range[1]))?.[0].length ?? 0
    return { operator: 'entry', start, end: end + comma, after: '' }
  })
}

/** A field with its value from a write of several, as `HSET key a 1 b 2`. */
function dropPairs(node: Node, text: string): Change[] {
  const given = node['arguments'] as Node[]
  const command = given[0] ? textOf(given[0], text).slice(1, -1) : ''
  if (command !== 'HSET' || given.length < 6) return []
  const places = given.flatMap((_one, index) => (index >= 2 && index % 2 === 0 ? [index] : []))
  return places.flatMap((index) => {
    const [before, value] = [given[index - 1], given[index + 1]]
    if (before === undefined || value === undefined) return []
    return [{ operator: 'entry', start: before.range[1], end: value.range[1], after: '' }]
  })
}

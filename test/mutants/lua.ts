/** Mutants of the Lua scripts that Redis runs (5.1), by their syntax tree. */
import { parse } from 'luaparse'
import { type Change, counterparts, type Mutant, toMutants } from './mutant.ts'

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

/** `KEYS[1]`, `ARGV[2]`: another place would be caught by whatever runs the script at all. */
const argument = /^(?:KEYS|ARGV)\[\d+\]$/

function visit(node: Node, text: string, changes: Change[]): void {
  if (argument.test(textOf(node, text))) return
  changes.push(...(rules[node.type]?.(node, text) ?? []))
  for (const child of Object.values(node).flat()) {
    const isNode = child !== null && typeof child === 'object' && 'type' in child
    if (isNode) visit(child as Node, text, changes)
  }
}

function textOf({ range }: Node, text: string): string {
  return text.slice(...range)
}

function replace(operator: string, { range: [start, end] }: Node, after: string): Change {
  return { operator, start, end, after }
}

type Rule = (node: Node, text: string) => Change[]

const rules: Record<string, Rule> = {
  BinaryExpression: swapOperator,
  LogicalExpression: swapOperator,
  UnaryExpression: (node, text) =>
    node['operator'] === 'not'
      ? [replace('condition', node, textOf(node['argument'] as Node, text))]
      : [],
  IfClause: forceCondition,
  ElseifClause: forceCondition,
  WhileStatement: (node) => [replace('condition', node['condition'] as Node, 'false')],
  BooleanLiteral: (node) => [replace('boolean', node, String(node['value'] !== true))],
  StringLiteral: changeText,
  CallStatement: (node) => [replace('call', node, '')],
  AssignmentStatement: (node) => [replace('call', node, '')],
  ReturnStatement: (node) =>
    (node['arguments'] as Node[]).length === 0 ? [replace('exit', node, '')] : [],
  BreakStatement: (node) => [replace('exit', node, '')],
  TableConstructorExpression: dropEntries,
  CallExpression: dropPairs,
}

/** The whole expression is the change, so that its name says where in its line it stands. */
function swapOperator(node: Node, text: string): Change[] {
  const operator = String(node['operator'])
  const [kind, swapped] = counterparts[operator] ?? []
  if (kind === undefined || swapped === undefined) return []
  const [left, right] = [node['left'] as Node, node['right'] as Node]
  const between = text.slice(left.range[1], right.range[0]).replace(operator, swapped)
  const before = text.slice(node.range[0], left.range[1])
  return [replace(kind, node, before + between + text.slice(right.range[0], node.range[1]))]
}

function forceCondition(node: Node): Change[] {
  return ['true', 'false'].map((forced) => replace('condition', node['condition'] as Node, forced))
}

/** Commands, options and bounds of Redis that have a counterpart. */
const otherWords: Record<string, string> = {
  ZRANGE: 'ZREVRANGE',
  ZREVRANGE: 'ZRANGE',
  ZRANGEBYSCORE: 'ZREVRANGEBYSCORE',
  ZPOPMIN: 'ZPOPMAX',
  INCR: 'DECR',
  INCRBY: 'DECRBY',
  HSET: 'HSETNX',
  HSETNX: 'HSET',
  PX: 'EX',
  NX: 'XX',
  XX: 'NX',
  '-inf': '+inf',
  '+inf': '-inf',
}

/** A key or a field becomes another one. */
function changeText(node: Node, text: string): Change[] {
  const content = textOf(node, text).slice(1, -1)
  const other = otherWords[content]
  if (other !== undefined) return [replace('redis', node, `'${other}'`)]
  return /^[a-z][\w:.-]*$/.test(content) ? [replace('text', node, `'${content}_'`)] : []
}

/** Each entry of a table with its comma. */
function dropEntries(node: Node, text: string): Change[] {
  return (node['fields'] as Node[]).map(({ range: [start, end] }) => {
    const comma = /^\s*,/.exec(text.slice(end, node.range[1]))?.[0].length ?? 0
    return { operator: 'entry', start, end: end + comma, after: '' }
  })
}

/** A field with its value from a write of several, as `HSET key a 1 b 2`. */
function dropPairs(node: Node, text: string): Change[] {
  const given = node['arguments'] as Node[]
  const command = given[0] ? textOf(given[0], text).slice(1, -1) : ''
  if (command !== 'HSET' || given.length < 6) return []
  return given.flatMap((_one, at) => {
    const [before, value] = [given[at - 1], given[at + 1]]
    if (at < 2 || at % 2 === 1 || !before || !value) return []
    return [{ operator: 'entry', start: before.range[1], end: value.range[1], after: '' }]
  })
}

/**
 * Mutants of TypeScript, by its syntax tree. Words for people are left alone: log lines, what an error says,
 * and what a schema says of its keys. Types are left alone too; a change that no longer satisfies them is found by the compiler.
 */
import { parseSync, visitorKeys } from 'oxc-parser'
import { type Change, type Mutant, otherNumbers, toMutants } from './mutant.ts'

export interface Node {
  type: string
  start: number
  end: number
  [key: string]: unknown
}

/** Throws where the text cannot be parsed. */
export function parseTypeScript(file: string, text: string): Node {
  const { program, errors } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message ?? 'cannot be parsed'}`)
  return program as unknown as Node
}

export function childrenOf(node: Node): Node[] {
  return (visitorKeys[node.type] ?? [])
    .flatMap((key) => node[key] as Node | Node[] | null | undefined)
    .filter((child) => child !== null && child !== undefined)
}

export function mutantsOfTypeScript(file: string, text: string): Mutant[] {
  const changes: Change[] = []
  visit(parseTypeScript(file, text), text, changes)
  return toMutants(file, text, changes)
}

/** Wrappers of a value, whose other half is a type. */
const valueWrappers = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'])

function visit(node: Node, text: string, changes: Change[]): void {
  if (isLeftAlone(node, text)) return
  changes.push(...changesOf(node, text))
  if (valueWrappers.has(node.type)) {
    visit(node['expression'] as Node, text, changes)
    return
  }
  const isRegExpSource = node.type === 'Literal' && node['regex'] !== undefined
  if (!isRegExpSource) for (const child of childrenOf(node)) visit(child, text, changes)
}

const peopleWords = /^(?:this\.)?(?:options\.|parts\.)?(?:log|logger)(?:\?\.|\.)/

/** Members that say what a key of the configuration is for, and show values of it. */
const schemaWords = new Set(['description', 'describe', 'examples'])
const wordNodes = new Set(['Literal', 'TemplateLiteral', 'ArrayExpression', 'Identifier'])

function isLeftAlone(node: Node, text: string): boolean {
  if (node.type === 'Property') {
    const [key, value] = [node['key'] as Node, node['value'] as Node]
    return schemaWords.has(textOf(key, text)) && wordNodes.has(value.type)
  }
  if (node.type.startsWith('TS') && !valueWrappers.has(node.type)) return true
  if (node.type.startsWith('Import') || node.type.startsWith('Export')) {
    return node['declaration'] === null || node['declaration'] === undefined
  }
  if (node.type === 'NewExpression') return textOf(node['callee'] as Node, text).endsWith('Error')
  return node.type === 'CallExpression' && peopleWords.test(textOf(node['callee'] as Node, text))
}

function textOf({ start, end }: Node, text: string): string {
  return text.slice(start, end)
}

type Rule = (node: Node, text: string) => Change[]

const rules: Record<string, Rule[]> = {
  BinaryExpression: [swapOperator],
  LogicalExpression: [swapLogic],
  AssignmentExpression: [swapOperator],
  UpdateExpression: [swapUpdate],
  UnaryExpression: [dropNegation],
  IfStatement: [forceTest, dropElse],
  ConditionalExpression: [forceTest],
  WhileStatement: [neverLoop],
  Literal: [changeLiteral],
  ExpressionStatement: [dropStatement],
  ReturnStatement: [dropExit],
  ContinueStatement: [dropExit],
  BreakStatement: [dropExit],
  ThrowStatement: [dropExit],
  CallExpression: [changeOrder, dropStep],
  ArrayExpression: [dropEntries],
  ObjectExpression: [dropEntries],
  FunctionDeclaration: [returnAtOnce],
  FunctionExpression: [returnAtOnce],
  ArrowFunctionExpression: [returnAtOnce],
}

function changesOf(node: Node, text: string): Change[] {
  return (rules[node.type] ?? []).flatMap((rule) => rule(node, text))
}

function replace(operator: string, { start, end }: Node, after: string): Change {
  return { operator, start, end, after }
}

const swaps: Record<string, [kind: string, operator: string]> = {
  '<': ['comparison', '<='],
  '<=': ['comparison', '<'],
  '>': ['comparison', '>='],
  '>=': ['comparison', '>'],
  '===': ['comparison', '!=='],
  '!==': ['comparison', '==='],
  '+': ['arithmetic', '-'],
  '-': ['arithmetic', '+'],
  '*': ['arithmetic', '/'],
  '/': ['arithmetic', '*'],
  '%': ['arithmetic', '*'],
  '+=': ['arithmetic', '-='],
  '-=': ['arithmetic', '+='],
  '&&': ['logic', '||'],
  '||': ['logic', '&&'],
}

/** The whole expression is the change, so that its name says where in its line it stands. */
function swapOperator(node: Node, text: string): Change[] {
  const [kind, swapped] = swaps[String(node['operator'])] ?? []
  if (kind === undefined || swapped === undefined) return []
  const [left, right] = [node['left'] as Node, node['right'] as Node]
  const between = text.slice(left.end, right.start)
  const operator = between.replace(String(node['operator']), swapped)
  return [replace(kind, node, textOf(left, text) + operator + textOf(right, text))]
}

function swapLogic(node: Node, text: string): Change[] {
  if (node['operator'] !== '??') return swapOperator(node, text)
  return [replace('logic', node, textOf(node['right'] as Node, text))]
}

function swapUpdate(node: Node, text: string): Change[] {
  const whole = textOf(node, text)
  const swapped = node['operator'] === '++' ? whole.replace('++', '--') : whole.replace('--', '++')
  return [replace('arithmetic', node, swapped)]
}

function dropNegation(node: Node, text: string): Change[] {
  if (node['operator'] !== '!') return []
  return [replace('condition', node, textOf(node['argument'] as Node, text))]
}

function forceTest(node: Node): Change[] {
  const test = node['test'] as Node
  return ['true', 'false'].map((forced) => replace('condition', test, forced))
}

function dropElse(node: Node, text: string): Change[] {
  const other = node['alternate'] as Node | null
  return other === null || textOf(other, text) === '{}' ? [] : [replace('call', other, '{}')]
}

function neverLoop(node: Node): Change[] {
  return [replace('condition', node['test'] as Node, 'false')]
}

function changeLiteral(node: Node, text: string): Change[] {
  const { value, regex } = node as Node & { value: unknown; regex?: Pattern }
  if (regex) return changePattern(node, regex)
  if (typeof value === 'boolean') return [replace('boolean', node, String(!value))]
  if (typeof value === 'number') {
    return otherNumbers(value).map((other) => replace('number', node, String(other)))
  }
  if (typeof value !== 'string' || !isKey(value)) return []
  const quoted = textOf(node, text)
  return [replace('text', node, `${quoted.slice(0, -1)}_${quoted.slice(-1)}`)]
}

/** A word of the program and not for people: a key, a kind, a field, a state. */
function isKey(value: string): boolean {
  return /^[a-z][\w:.-]*$/i.test(value)
}

interface Pattern {
  pattern: string
  flags: string
}

/** `u` and `v` only say how a pattern is written. */
function meaningful(flags: string): string[] {
  return flags.replaceAll(/[uv]/g, '').split('').filter(Boolean)
}

/** Anchors and flags, where what is left is still a pattern. */
function changePattern(node: Node, { pattern, flags }: Pattern): Change[] {
  const texts = [
    ...meaningful(flags).map((flag) => [pattern, flags.replace(flag, '')]),
    ...(pattern.startsWith('^') ? [[pattern.slice(1), flags]] : []),
    ...(/[^\\]\$$/.test(pattern) ? [[pattern.slice(0, -1), flags]] : []),
  ] as [string, string][]
  return texts
    .filter(([source, kept]) => source !== '' && isPattern(source, kept))
    .map(([source, kept]) => replace('pattern', node, `/${source}/${kept}`))
}

function isPattern(source: string, flags: string): boolean {
  try {
    new RegExp(source, flags)
    return true
  } catch {
    return false
  }
}

function dropStatement(node: Node, text: string): Change[] {
  const stated = node['expression'] as Node
  const called =
    stated.type === 'AwaitExpression' || stated['operator'] === 'void'
      ? (stated['argument'] as Node)
      : stated
  const value = called.type === 'ChainExpression' ? (called['expression'] as Node) : called
  if (isLeftAlone(value, text)) return []
  if (value.type === 'CallExpression') return [replace('call', node, ';')]
  return value.type === 'AssignmentExpression' ? [replace('assignment', node, ';')] : []
}

/** `return` without a value, `continue`, `break` and `throw`: what comes after them runs as well. */
function dropExit(node: Node): Change[] {
  const hasValue = node.type === 'ReturnStatement' && node['argument'] !== null
  return hasValue ? [] : [replace('exit', node, ';')]
}

const neighbours: Record<string, string> = {
  some: 'every',
  every: 'some',
  min: 'max',
  max: 'min',
  floor: 'ceil',
  ceil: 'floor',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
}

function changeOrder(node: Node, text: string): Change[] {
  const { property, name } = calledProperty(node, text)
  if (property === undefined) return []
  const other = neighbours[name]
  if (other !== undefined) {
    const inner =
      text.slice(node.start, property.start) + other + text.slice(property.end, node.end)
    return [replace('order', node, inner)]
  }
  if (name === 'toSorted') return [replace('order', node, `${textOf(node, text)}.toReversed()`)]
  return name === 'sort' ? [replace('order', node, `${textOf(node, text)}.reverse()`)] : []
}

/** Steps on a list or text whose result is of the same type. */
const steps =
  /^(?:filter|slice|toReversed|reverse|trim|toLowerCase|toUpperCase|replace|replaceAll|normalize)$/

function dropStep(node: Node, text: string): Change[] {
  const { object, name } = calledProperty(node, text)
  if (object === undefined || !steps.test(name)) return []
  return [replace('step', node, textOf(object, text))]
}

function calledProperty(
  node: Node,
  text: string,
): { object?: Node; property?: Node; name: string } {
  const callee = node['callee'] as Node
  if (callee.type !== 'MemberExpression' || callee['computed'] === true) return { name: '' }
  const property = callee['property'] as Node
  return { object: callee['object'] as Node, property, name: textOf(property, text) }
}

/** Each entry of a list or of an object with its comma. */
function dropEntries(node: Node, text: string): Change[] {
  const entries = (node['elements'] ?? node['properties']) as (Node | null)[]
  return entries.flatMap((entry) => {
    if (entry === null || isLeftAlone(entry, text) || isSentence(entry, text)) return []
    const comma = /^\s*,/.exec(text.slice(entry.end))?.[0].length ?? 0
    return [{ operator: 'entry', start: entry.start, end: entry.end + comma, after: '' }]
  })
}

/** A text with blanks is for people. */
function isSentence(entry: Node, text: string): boolean {
  const value = entry.type === 'Property' ? (entry['value'] as Node) : entry
  return ['Literal', 'TemplateLiteral'].includes(value.type) && /^['`].* /.test(textOf(value, text))
}

/** Functions that return nothing do nothing. */
function returnAtOnce(node: Node, text: string): Change[] {
  const [body, returns] = [node['body'] as Node | null, node['returnType'] as Node | null]
  if (body?.type !== 'BlockStatement' || !returns) return []
  if (!/^: *(?:Promise<void>|void)$/.test(textOf(returns, text))) return []
  return (body['body'] as Node[]).length < 2 ? [] : [replace('return', body, '{}')]
}

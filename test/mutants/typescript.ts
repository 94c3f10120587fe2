/**
 * Mutants of TypeScript, by its syntax tree. Words for people are left alone: log lines, what an error says,
 * and what a schema says of its keys. Types are left alone too; the compiler finds a change that breaks them.
 */
import { parseSync, visitorKeys } from 'oxc-parser'
import { type Change, counterparts, type Mutant, toMutants } from './mutant.ts'

interface Node {
  type: string
  start: number
  end: number
  [key: string]: unknown
}

/** Throws where the text cannot be parsed. */
export function mutantsOfTypeScript(file: string, text: string): Mutant[] {
  const { program, errors } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message ?? 'cannot be parsed'}`)
  const changes: Change[] = []
  visit(program as unknown as Node, text, changes)
  return toMutants(file, text, changes)
}

/** Wrappers of a value, whose other half is a type. */
const valueWrappers = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'])

function visit(node: Node, text: string, changes: Change[]): void {
  if (isLeftAlone(node, text)) return
  changes.push(...(rules[node.type]?.(node, text) ?? []))
  const keys = valueWrappers.has(node.type) ? ['expression'] : (visitorKeys[node.type] ?? [])
  const children = keys.flatMap((key) => node[key] as Node | Node[] | null | undefined)
  for (const child of children) if (child) visit(child, text, changes)
}

const peopleWords = /^(?:this\.)?(?:options\.|parts\.)?(?:log|logger)(?:\?\.|\.)/
const schemaWords = new Set(['description', 'describe', 'examples'])
const wordNodes = new Set(['Literal', 'TemplateLiteral', 'ArrayExpression', 'Identifier'])

function isLeftAlone(node: Node, text: string): boolean {
  const callee = (): string => textOf(node['callee'] as Node, text)
  if (node.type === 'Property') {
    const isOfSchema = schemaWords.has(textOf(node['key'] as Node, text))
    return isOfSchema && wordNodes.has((node['value'] as Node).type)
  }
  if (node.type.startsWith('TS') && !valueWrappers.has(node.type)) return true
  if (/^(?:Im|Ex)port/.test(node.type)) return !node['declaration']
  if (node.type === 'NewExpression') return callee().endsWith('Error')
  return node.type === 'CallExpression' && peopleWords.test(callee())
}

function textOf({ start, end }: Node, text: string): string {
  return text.slice(start, end)
}

function replace(operator: string, { start, end }: Node, after: string): Change {
  return { operator, start, end, after }
}

type Rule = (node: Node, text: string) => Change[]

const rules: Record<string, Rule> = {
  BinaryExpression: swapOperator,
  AssignmentExpression: swapOperator,
  LogicalExpression: (node, text) =>
    node['operator'] === '??'
      ? [replace('logic', node, textOf(node['right'] as Node, text))]
      : swapOperator(node, text),
  UnaryExpression: (node, text) =>
    node['operator'] === '!'
      ? [replace('condition', node, textOf(node['argument'] as Node, text))]
      : [],
  IfStatement: forceTest,
  ConditionalExpression: forceTest,
  WhileStatement: (node) => [replace('condition', node['test'] as Node, 'false')],
  Literal: changeLiteral,
  ExpressionStatement: dropStatement,
  ReturnStatement: (node) => (node['argument'] === null ? [replace('exit', node, ';')] : []),
  ContinueStatement: (node) => [replace('exit', node, ';')],
  BreakStatement: (node) => [replace('exit', node, ';')],
  ThrowStatement: (node) => [replace('exit', node, ';')],
  CallExpression: changeOrder,
  ArrayExpression: dropEntries,
  ObjectExpression: dropEntries,
  FunctionDeclaration: returnAtOnce,
  FunctionExpression: returnAtOnce,
  ArrowFunctionExpression: returnAtOnce,
}

/** The whole expression is the change, so that its name says where in its line it stands. */
function swapOperator(node: Node, text: string): Change[] {
  const operator = String(node['operator'])
  const [kind, swapped] = counterparts[operator] ?? []
  if (kind === undefined || swapped === undefined) return []
  const [left, right] = [node['left'] as Node, node['right'] as Node]
  const between = text.slice(left.end, right.start).replace(operator, swapped)
  return [replace(kind, node, textOf(left, text) + between + textOf(right, text))]
}

function forceTest(node: Node): Change[] {
  return ['true', 'false'].map((forced) => replace('condition', node['test'] as Node, forced))
}

/** A stored word becomes another one. */
function changeLiteral(node: Node): Change[] {
  const { value } = node
  if (typeof value === 'boolean') return [replace('boolean', node, String(!value))]
  const isWord = typeof value === 'string' && /^[a-z][\w:.-]*$/.test(value)
  return isWord ? [replace('text', node, `'${value}_'`)] : []
}

/** A call whose answer nobody reads, or an assignment. */
function dropStatement(node: Node, text: string): Change[] {
  const stated = node['expression'] as Node
  const isWrapped = stated.type === 'AwaitExpression' || stated['operator'] === 'void'
  const called = isWrapped ? (stated['argument'] as Node) : stated
  const value = called.type === 'ChainExpression' ? (called['expression'] as Node) : called
  if (isLeftAlone(value, text)) return []
  const isAct = value.type === 'CallExpression' || value.type === 'AssignmentExpression'
  return isAct ? [replace('call', node, ';')] : []
}

const neighbours: Record<string, string> = {
  some: 'every',
  every: 'some',
  min: 'max',
  max: 'min',
  startsWith: 'endsWith',
}

function changeOrder(node: Node, text: string): Change[] {
  const callee = node['callee'] as Node
  if (callee.type !== 'MemberExpression' || callee['computed'] === true) return []
  const property = callee['property'] as Node
  const name = textOf(property, text)
  if (name === 'toSorted') return [replace('order', node, `${textOf(node, text)}.toReversed()`)]
  if (name === 'filter') return [replace('order', node, textOf(callee['object'] as Node, text))]
  const other = neighbours[name]
  return other === undefined ? [] : [replace('order', property, other)]
}

/** Each entry of a list or of an object with its comma; a text with blanks is for people. */
function dropEntries(node: Node, text: string): Change[] {
  const entries = (node['elements'] ?? node['properties']) as (Node | null)[]
  return entries.flatMap((entry) => {
    if (entry === null || isLeftAlone(entry, text)) return []
    const value = entry.type === 'Property' ? (entry['value'] as Node) : entry
    if (/^['`].* /.test(textOf(value, text))) return []
    const comma = /^\s*,/.exec(text.slice(entry.end))?.[0].length ?? 0
    return [{ operator: 'entry', start: entry.start, end: entry.end + comma, after: '' }]
  })
}

/** Functions that return nothing do nothing. */
function returnAtOnce(node: Node, text: string): Change[] {
  const [body, returns] = [node['body'] as Node | null, node['returnType'] as Node | null]
  if (body?.type !== 'BlockStatement' || !returns) return []
  const isVoid = /^: *(?:Promise<void>|void)$/.test(textOf(returns, text))
  return isVoid && (body['body'] as Node[]).length > 1 ? [replace('return', body, '{}')] : []
}

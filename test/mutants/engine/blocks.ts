/**
 * Blocks of a TypeScript file, and its text with a note in each of them of having run. Which test file
 * reaches a mutant is known by the innermost block around it.
 */
import { childrenOf, type Node, parseTypeScript } from './typescript.ts'

export interface Block {
  start: number
  end: number
}

interface Insertion {
  at: number
  text: string
}

/** The whole file is the first block: it runs when the module is loaded. */
export function blocksOf(file: string, text: string): Block[] {
  const program = parseTypeScript(file, text)
  return [{ start: 0, end: text.length }, ...blockNodes(program)]
}

/** Innermost; offsets in the text of the file. */
export function blockAround(blocks: readonly Block[], offset: number): Block {
  const around = blocks.filter(({ start, end }) => start <= offset && offset < end)
  return around.reduce((inner, block) => (block.start >= inner.start ? block : inner), blocks[0]!)
}

/** `mark` gives the statement's text for a block; lines stay where they are. */
export function instrument(file: string, text: string, mark: (block: Block) => string): string {
  const nodes = blockNodes(parseTypeScript(file, text))
  const insertions = nodes.flatMap((node) => insertionsFor(node, mark(node)))
  const whole = `${text}\n;${mark({ start: 0, end: text.length })};\n`
  return insertions
    .toSorted((one, other) => other.at - one.at)
    .reduce((made, { at, text: added }) => made.slice(0, at) + added + made.slice(at), whole)
}

function insertionsFor({ type, start, end }: Node, call: string): Insertion[] {
  if (type === 'BlockStatement') return [{ at: start + 1, text: `${call};` }]
  if (type.endsWith('Statement')) {
    return [
      { at: start, text: `{${call};` },
      { at: end, text: '}' },
    ]
  }
  return [
    { at: start, text: `(${call},` },
    { at: end, text: ')' },
  ]
}

/** Blocks, statements that stand for one, and the expressions of short functions and choices. */
function blockNodes(node: Node): Node[] {
  const own = Object.entries(branches)
    .filter(([place]) => place.split('.')[0] === node.type)
    .map(([place]) => node[place.split('.')[1] ?? ''] as Node | null | undefined)
    .filter((branch) => branch !== null && branch !== undefined)
    .filter(({ type }) => type !== 'BlockStatement' && type !== 'IfStatement')
  const isBlock = node.type === 'BlockStatement'
  return [...(isBlock ? [node] : []), ...own, ...childrenOf(node).flatMap(blockNodes)]
}

const branches = {
  'IfStatement.consequent': true,
  'IfStatement.alternate': true,
  'ForOfStatement.body': true,
  'ForStatement.body': true,
  'WhileStatement.body': true,
  'ArrowFunctionExpression.body': true,
  'ConditionalExpression.consequent': true,
  'ConditionalExpression.alternate': true,
}

/** The titles of every type's message, from the samples that the tests go over. */
import { titleOf } from '../../src/messages/message.ts'
import type { DeliveryMember } from '../../src/sinks/sink.ts'
import { typeMembers } from '../support/scenes.ts'
import { code, table } from './markdown.ts'

export function messageBlocks(): [string, string][] {
  const rows = typeMembers.map(({ type, item, full }) => {
    const [fromItem, fromFull] = [show(item), show(full)]
    return [code(type), code(fromItem), fromFull === fromItem ? 'the same' : code(fromFull)]
  })
  return [['messages titles', table(['Type', 'From the search item', 'With the full event'], rows)]]
}

/** Without a backtick, which would end the code that the title stands in. */
function show(member: DeliveryMember): string {
  return titleOf(member).replaceAll('`', "'")
}

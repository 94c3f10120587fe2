/** The titles of every type's message, from the samples that the tests go over. */
import { renderMessage } from '../../src/messages/message.ts'
import type { DeliveryMember } from '../../src/sinks/sink.ts'
import { typeMembers } from '../support/scenes.ts'
import { code, table } from './markdown.ts'

export function messageBlocks(): [string, string][] {
  const rows = typeMembers.map(({ type, item, full }) => {
    const [fromItem, fromFull] = [titleOf(item), titleOf(full)]
    return [code(type), code(fromItem), fromFull === fromItem ? 'the same' : code(fromFull)]
  })
  return [['messages titles', table(['Type', 'From the search item', 'With the full event'], rows)]]
}

/** Without a backtick, which would end the code that the title stands in. */
function titleOf(member: DeliveryMember): string {
  return renderMessage(member, { attempt: 1, mayBeRepeat: false }).title.replaceAll('`', "'")
}

/**
 * What a sink for people promises of its templates: their words arrive, those of a feed in them are
 * as inert as everywhere, and one that fails costs no message.
 */
import { describe, expect, test } from 'vitest'
import type { MessageTemplates } from '../../src/sinks/templates/template-config.ts'
import { aDelivery } from './deliveries.ts'
import {
  arrange,
  hostileMember,
  hostileTexts,
  patience,
  type SinkConformance,
  type SinkDriver,
} from './sink-conformance.ts'

/** Every variable that holds words of a feed, alone, in markup that the template begins, and joined to a link. */
const joined =
  '{% assign host = "evil example" | split: " " %}https://{{ host[0] }}.{{ host[1] }}/x'
const loud: MessageTemplates = {
  title: 'Case {{ source }} {{ type | upcase }} [{{ tags[0] }}]({{ notes }}) <{{ severity }}>',
  body: `Own line
{{ notes }}
{{ tags | join: "\\n" }}
<b>{{ source }}</b> @{{ type }} <!{{ severity }}> <{{ url }}|{{ source }}>
${joined}
{% for entry in highlights %}{{ entry[0] }}: {{ entry[1] }}
{% endfor %}{{ detail }}
{% for fact in facts %}{{ fact.label }}: {{ fact.value | replace: "[.]", "." | replace: "hxxp", "http" }}
{% endfor %}{{ identifiers | map: "name" }}`,
}

const failing: MessageTemplates = {
  title: 'Case {% if source == "boom" %}{% for i in (1..300000) %}{{ i }}{% endfor %}{% endif %}',
}

export function describeTemplateConformance<D extends SinkDriver>(suite: SinkConformance<D>): void {
  describe(`${suite.name} keeps its promises with templates`, () => {
    test('the words of its templates arrive', async () => {
      const { driver, sink } = await arrange(suite, { templates: loud })
      await sink.send(aDelivery(sink), { signal: patience() })
      expect(driver.received()).toHaveLength(1)
      expect(driver.received()[0]?.text).toContain('Own line')
      expect(driver.received()[0]?.text).toContain('Case stealer_logs_live')
    })

    test('hostile text in them arrives as inert text', async () => {
      const { driver, sink, failures } = await arrange(suite, { templates: loud })
      for (const text of hostileTexts) {
        const members = [hostileMember(text)]
        await sink.send(aDelivery(sink, { id: 'hostile', members }), { signal: patience() })
      }
      expect(failures).toEqual([])
      expect(driver.received()).toHaveLength(hostileTexts.length)
      for (const message of driver.received()) {
        expect(message.text).toContain('Own line')
        driver.expectInert(message)
      }
    })

    test('a message whose template fails arrives with the built-in title, and one line says so', async () => {
      const { driver, sink, failures } = await arrange(suite, { templates: failing })
      await sink.send(aDelivery(sink, { members: [hostileMember('boom')] }), { signal: patience() })
      expect(driver.received()).toHaveLength(1)
      expect(driver.received()[0]?.text).not.toContain('Case')
      expect(failures).toEqual([
        {
          sink: sink.name,
          template: 'title',
          problem: expect.stringMatching(/^it .* \(line 1, column \d+ of the template\)$/),
        },
      ])
    })
  })
}

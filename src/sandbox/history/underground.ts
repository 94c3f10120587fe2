/** Events from forums, chats, blogs and markets. */
import { zoneless, type Draft, type DraftContext } from './draft.ts'
import { actorOf, highlightOf, hostOf, postAbout } from './words.ts'

export function forumPost({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const content = postAbout(random, subject)
  const forum = random.pick(['xss', 'exploit', 'breachforums', 'dread'])
  return {
    type: 'forum_post',
    uid: `forum_post/${forum}/${number}`,
    severities: ['medium', 'medium', 'low', 'high'],
    data: {
      actor: actorOf(random),
      context: {
        category_name: 'Access',
        topic_id: String(random.int(1, 99_999)),
        topic_title: subject,
      },
      posted_at: `${zoneless(createdAtMs + 19_800_000)}+05:30`,
      content,
      url: `http://${forum}.example/posts/${number}`,
    },
    highlights: { content: [highlightOf(content, subject)] },
  }
}

export function chatMessage({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const content = postAbout(random, subject)
  const conversation = random.int(1_000_000, 1_999_999)
  return {
    type: 'chat_message',
    uid: `chat_message/telegram/${conversation}/${number}`,
    severities: ['low', 'medium', 'medium', 'info'],
    data: {
      posted_at: zoneless(createdAtMs),
      actor: actorOf(random),
      context: {
        conversation_id: String(conversation),
        conversation_name: 'Daily Logs ☁️ VIP',
      },
      content,
      parent_context: null,
      forward_info: null,
      was_forwarded: random.chance(0.2),
    },
    highlights: { content: [highlightOf(content, subject)] },
  }
}

export function blogPost({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const content = postAbout(random, subject)
  return {
    type: 'blog_post',
    uid: `blog_post/hidden_wiki_news/${number}`,
    severities: ['low', 'info', 'medium'],
    data: {
      url: `http://news.example/${number}`,
      content,
      description: null,
      posted_at: random.chance(0.5) ? null : zoneless(createdAtMs),
    },
    highlights: { content: [highlightOf(content, subject)] },
  }
}

export function listing({ random, number, subject }: DraftContext): Draft {
  const content = postAbout(random, subject)
  return {
    type: 'listing',
    uid: `listing/apollon_market/${number}`,
    severities: ['medium', 'high', 'low'],
    data: {
      url: `http://apollon.example/listing/${number}`,
      title: `${subject} accounts x10`,
      content,
      currency: 'USD',
      escrow: random.chance(0.7),
      price: random.int(5, 5000) / 10,
      ship_to: [],
      ship_from: ['Worldwide'],
      stock_count: null,
      actor: actorOf(random),
      classification: {
        classes: { is_carding: true, is_phishing: null },
        types: { is_data: true, is_service: false },
      },
      context: { category_name: 'Accounts' },
    },
    highlights: { title: [highlightOf(subject, subject)] },
  }
}

/** Its uid says `document`, unlike its type (public documentation, event types). */
export function ransomLeak({ random, number, subject }: DraftContext): Draft {
  const group = random.pick(['lockbit', 'akira', 'play', 'qilin'])
  return {
    type: 'ransomleak',
    uid: `document/${group}/${number}`,
    severities: ['critical', 'critical', 'high'],
    data: {
      url: `http://${group}.example/post/${number}`,
      response_url: null,
      title: subject,
      content: `${subject} has been encrypted. 5 days left.`,
      body: null,
      victim_information: {
        name: subject.toLowerCase(),
        display_name: subject,
        domain: hostOf(subject),
        alternative_domains: null,
        industry: 'finance',
        employee_count: random.int(10, 50_000),
        city: 'Zürich',
        state: null,
        country: 'CH',
        latitude: 47.37,
        longitude: 8.54,
      },
    },
    highlights: { title: [highlightOf(subject, subject)] },
  }
}

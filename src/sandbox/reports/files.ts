/** A report as the small docx or pdf file that the service's download gives. */
import { crc32 } from 'node:zlib'

export const reportFileTypes = {
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  pdf: 'application/pdf',
} as const

export function makeReportFile(
  lines: readonly string[],
  format: keyof typeof reportFileTypes,
): Buffer {
  return format === 'docx' ? makeDocx(lines) : makePdf(lines)
}

const packageFormat = 'http://schemas.openxmlformats.org/package/2006'
const wordType = `${reportFileTypes.docx}.main+xml`
const wordFormat = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main'
const documentRelation =
  'http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument'

/** The three parts without which no word processor opens a document (ECMA-376). */
function makeDocx(lines: readonly string[]): Buffer {
  const paragraphs = lines.map(
    (line) => `<w:p><w:r><w:t xml:space="preserve">${escapeXml(line)}</w:t></w:r></w:p>`,
  )
  return makeZip({
    '[Content_Types].xml': `<Types xmlns="${packageFormat}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="${wordType}"/></Types>`,
    '_rels/.rels': `<Relationships xmlns="${packageFormat}/relationships"><Relationship Id="r1" Type="${documentRelation}" Target="word/document.xml"/></Relationships>`,
    'word/document.xml': `<w:document xmlns:w="${wordFormat}"><w:body>${paragraphs.join('')}</w:body></w:document>`,
  })
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** A ZIP archive of uncompressed XML files. */
function makeZip(files: Readonly<Record<string, string>>): Buffer {
  const [locals, entries]: [Buffer[], Buffer[]] = [[], []]
  let offset = 0
  for (const [name, text] of Object.entries(files)) {
    const content = Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>${text}`)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0) // version needed
    common.writeUInt16LE(0x21, 8) // 1980-01-01
    common.writeUInt32LE(crc32(content), 10)
    common.writeUInt32LE(content.length, 14)
    common.writeUInt32LE(content.length, 18)
    common.writeUInt16LE(name.length, 22)
    const local = Buffer.concat([Buffer.from('PK\u0003\u0004'), common, Buffer.from(name), content])
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    const madeBy = Buffer.from([20, 0])
    entries.push(
      Buffer.concat([Buffer.from('PK\u0001\u0002'), madeBy, common, place, Buffer.from(name)]),
    )
    locals.push(local)
    offset += local.length
  }
  const directory = Buffer.concat(entries)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(entries.length, 4)
  end.writeUInt16LE(entries.length, 6)
  end.writeUInt32LE(directory.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...locals, directory, Buffer.from('PK\u0005\u0006'), end])
}

const linesShown = 50

/** One page. Its font has Latin letters alone; any other character is a question mark. */
function makePdf(lines: readonly string[]): Buffer {
  const rows = lines.flatMap((line) => line.match(/.{1,90}/gu) ?? ['']).slice(0, linesShown)
  const shown = rows.map((row) => {
    const latin = row.replaceAll(/[^\u0020-\u007E\u00A0-\u00FF]/gu, '?')
    return `(${latin.replaceAll(/[\\()]/g, String.raw`\$&`)}) Tj T*`
  })
  const stream = `BT /F1 10 Tf 14 TL 50 790 Td\n${shown.join('\n')}\nET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [4 0 R] /Count 1 >>',
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>',
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
  ]
  let text = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = text.length
    text += `${index + 1} 0 obj\n${object}\nendobj\n`
    return `${String(offset).padStart(10, '0')} 00000 n \n`
  })
  const table = `xref\n0 6\n0000000000 65535 f \n${offsets.join('')}`
  const trailer = `trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`
  return Buffer.from(text + table + trailer, 'latin1')
}

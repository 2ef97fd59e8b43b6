// Turns the answer of `tenure schema` on stdin into TypeScript declarations on stdout: one type for each definition.
import { readFileSync } from 'node:fs';

const { $defs } = JSON.parse(readFileSync(0, 'utf8'));
const named = (name) => name.replace(/(^|\W|_)(\w)/g, (_, _before, letter) => letter.toUpperCase()).replace(/\W/g, '');

function typeOf(schema) {
  if (schema === true || !Object.keys(schema).length) return 'unknown';
  if (schema.$ref) return named(schema.$ref.split('/').at(-1));
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(' | ');
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return several.map(typeOf).join(' | ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(' | ');
  switch (schema.type) {
    case 'integer': case 'number': return 'number';
    case 'array': return `Array<${schema.items ? typeOf(schema.items) : 'unknown'}>`;
    case 'object': return schema.properties ? objectOf(schema) : 'Record<string, any>';
    default: return schema.type ?? 'unknown';
  }
}

function objectOf({ properties, required = [] }) {
  const fields = Object.entries(properties);
  return `{ ${fields.map(([name, field]) => `${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(field)}`).join('; ')} }`;
}

for (const [name, schema] of Object.entries($defs)) console.log(`export type ${named(name)} = ${typeOf(schema)};`);

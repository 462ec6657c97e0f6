"""What tree-sitter is asked of JavaScript and TypeScript files, and the names that every file knows."""

from __future__ import annotations

COMMON = """
(identifier) @name
(shorthand_property_identifier) @name
(call_expression function: (member_expression property: (property_identifier) @called))

(program (lexical_declaration (variable_declarator name: (_) @top)))
(program (variable_declaration (variable_declarator name: (_) @top)))
(program (function_declaration name: (_) @top))
(program (generator_function_declaration name: (_) @top))
(program (class_declaration name: (_) @top))
(export_statement declaration: (lexical_declaration (variable_declarator name: (_) @exported)))
(export_statement declaration: (variable_declaration (variable_declarator name: (_) @exported)))
(export_statement declaration: (function_declaration name: (_) @exported))
(export_statement declaration: (generator_function_declaration name: (_) @exported))
(export_statement declaration: (class_declaration name: (_) @exported))
(export_statement) @export
(import_statement) @import
(class_declaration) @class
(class) @class
(method_definition name: (_) @method)

(variable_declarator name: (identifier) @bound)
(shorthand_property_identifier_pattern) @bound
(array_pattern (identifier) @bound)
(pair_pattern value: (identifier) @bound)
(rest_pattern (identifier) @bound)
(assignment_pattern left: (identifier) @bound)
(arrow_function parameter: (identifier) @bound)
(for_in_statement left: (identifier) @bound)
(catch_clause parameter: (identifier) @bound)
(function_declaration name: (_) @bound)
(function_expression name: (_) @bound)
(class_declaration name: (_) @bound)

(function_declaration) @scope
(function_expression) @scope
(arrow_function) @scope
(method_definition) @scope
(statement_block) @scope
(for_statement) @scope
(for_in_statement) @scope

(call_expression function: (identifier) @_require arguments: (arguments . (string) @required)
  (#eq? @_require "require"))
(call_expression function: (import) arguments: (arguments . (string) @required))
(assignment_expression left: (member_expression) @assigned)
"""

JAVASCRIPT = """
(formal_parameters (identifier) @bound)
"""

TYPESCRIPT = """
(type_identifier) @name
(required_parameter pattern: (identifier) @bound)
(optional_parameter pattern: (identifier) @bound)
(type_parameter name: (_) @bound)
(interface_declaration) @class
(abstract_class_declaration) @class
(abstract_class_declaration name: (_) @bound)
(interface_declaration name: (_) @bound)
(type_alias_declaration name: (_) @bound)
(enum_declaration name: (_) @bound)
(method_signature name: (_) @method)
(abstract_method_signature name: (_) @method)
(program (interface_declaration name: (_) @top))
(program (abstract_class_declaration name: (_) @top))
(program (type_alias_declaration name: (_) @top))
(program (enum_declaration name: (_) @top))
(program (function_signature name: (_) @top))
(program (expression_statement (internal_module name: (_) @top)))
(program (ambient_declaration (_ name: (_) @top)))
(program (ambient_declaration (_ (variable_declarator name: (_) @top))))
(program (ambient_declaration (statement_block (_ name: (_) @global))))
(program (ambient_declaration (statement_block (_ (variable_declarator name: (_) @global)))))
(export_statement declaration: (interface_declaration name: (_) @exported))
(export_statement declaration: (abstract_class_declaration name: (_) @exported))
(export_statement declaration: (type_alias_declaration name: (_) @exported))
(export_statement declaration: (enum_declaration name: (_) @exported))
(export_statement declaration: (function_signature name: (_) @exported))
(export_statement declaration: (internal_module name: (_) @exported))
(export_statement declaration: (ambient_declaration (_ name: (_) @exported)))
(export_statement declaration: (ambient_declaration (_ (variable_declarator name: (_) @exported))))
(import_require_clause) @import_require
(ambient_declaration (module name: (string) @augmented))
(ambient_declaration (module name: (string) body: (_) @augmentation))
(method_signature name: (property_identifier) @offered)
(property_signature name: (property_identifier) @offered
  type: (type_annotation [(function_type) (parenthesized_type (function_type))]))
"""

_BUILTINS = """
AbortController AbortSignal AggregateError Array ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array
Blob Boolean Buffer CustomEvent DOMException DataView Date Document Element Error EvalError Event
EventTarget File FinalizationRegistry Float32Array Float64Array FormData Function Headers HTMLElement
Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math MessageChannel MutationObserver NaN
Node Number Object Promise Proxy RangeError ReadableStream ReferenceError Reflect RegExp Request Response
Set SharedArrayBuffer String Symbol SyntaxError TextDecoder TextEncoder TypeError URIError URL
URLSearchParams Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet WebAssembly
WebSocket Window Worker XMLHttpRequest __dirname __filename alert any arguments as async atob await boolean
btoa cancelAnimationFrame clearImmediate clearInterval clearTimeout confirm console crypto customElements
decodeURI decodeURIComponent define document encodeURI encodeURIComponent escape eval exports fetch global
globalThis history isFinite isNaN keyof localStorage location module navigator never null number object
parseFloat parseInt performance process prompt queueMicrotask requestAnimationFrame require self
sessionStorage setImmediate setInterval setTimeout string structuredClone super symbol this undefined
unescape unknown void window Awaited Capitalize ConstructorParameters Exclude Extract InstanceType Iterable
IterableIterator NonNullable Omit OmitThisParameter Parameters Partial Pick PromiseLike Readonly
ReadonlyArray ReadonlyMap ReadonlySet Record Required ReturnType ThisParameterType ThisType Uncapitalize
Uppercase Lowercase
"""

_BUILTIN_MEMBERS = """
add addEventListener all allSettled any append appendChild apply assign at bind call catch charAt charCodeAt
clear close codePointAt concat createElement defineProperty delete describe done emit endsWith entries every
exec fill filter finally find findIndex findLast flat flatMap forEach freeze from fromEntries get
getAttribute getElementById getOwnPropertyNames getPrototypeOf has hasOwnProperty includes indexOf is
isArray isInteger isPrototypeOf join keys lastIndexOf length localeCompare log map match matchAll max min
next now of on once padEnd padStart parse pop preventDefault push querySelector querySelectorAll race raw
reduce reduceRight reject remove removeEventListener repeat replace replaceAll resolve reverse search set
setAttribute shift slice some sort splice split startsWith stopPropagation stringify substr substring test
then toFixed toISOString toLocaleString toLowerCase toString toUpperCase trim trimEnd trimStart unshift
valueOf values warn write
"""
BUILTINS = frozenset(_BUILTINS.split())
BUILTIN_MEMBERS = frozenset(_BUILTIN_MEMBERS.split())

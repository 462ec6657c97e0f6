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

(identifier) @name
(keyword_argument name: (identifier) @keyword)

(function_definition name: (identifier) @function)
(class_definition name: (identifier) @class)
(assignment left: (identifier) @assigned)
(assignment left: (pattern_list (identifier) @assigned))
(assignment left: (tuple_pattern (identifier) @assigned))
(type_alias_statement left: (type (identifier) @assigned))

(parameters (identifier) @bound)
(lambda_parameters (identifier) @bound)
(default_parameter name: (identifier) @bound)
(typed_default_parameter name: (identifier) @bound)
(typed_parameter . (identifier) @bound)
(list_splat_pattern (identifier) @bound)
(dictionary_splat_pattern (identifier) @bound)
(for_statement left: (identifier) @bound)
(for_statement left: (pattern_list (identifier) @bound))
(for_statement left: (tuple_pattern (identifier) @bound))
(for_in_clause left: (identifier) @bound)
(for_in_clause left: (pattern_list (identifier) @bound))
(for_in_clause left: (tuple_pattern (identifier) @bound))
(as_pattern_target (identifier) @bound)
(named_expression name: (identifier) @bound)
(case_pattern (dotted_name . (identifier) @bound .))

(import_statement) @import
(import_from_statement) @from
(import_statement (dotted_name (identifier) @imported))
(import_from_statement (dotted_name (identifier) @imported))
(relative_import (dotted_name (identifier) @imported))
(aliased_import (dotted_name (identifier) @imported))
(aliased_import alias: (identifier) @imported)
(future_import_statement (dotted_name (identifier) @imported))
(if_statement
  condition: [(identifier) (attribute)] @_condition consequence: (block) @guarded
  (#match? @_condition "TYPE_CHECKING$"))
(augmented_assignment left: (identifier) @augmented)

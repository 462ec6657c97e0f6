; Of two captures of the same node the one that stands first here is handled first; names come last.
(package_clause (package_identifier) @package)
(import_spec) @import
[(function_declaration) (method_declaration) (func_literal)] @function
[(block) (if_statement) (for_statement) (expression_switch_statement) (select_statement)
 (expression_case) (default_case) (communication_case) (type_switch_statement) (type_case)] @block
[(type_spec) (type_alias)] @type_spec
(type_parameter_declaration) @type_parameter
[(parameter_declaration) (variadic_parameter_declaration)] @parameter
(short_var_declaration) @short
[(var_spec) (const_spec)] @spec
(range_clause) @range
(receive_statement) @receive
(keyed_element . (literal_element (identifier) @key))
(selector_expression) @selector
(qualified_type) @qualified
[(identifier) (type_identifier)] @name

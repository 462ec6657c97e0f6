; Of two captures of the same node the one that stands first here is handled first; names come last.
[(namespace_declaration) (file_scoped_namespace_declaration)] @namespace
(using_directive) @using
[(class_declaration) (struct_declaration) (interface_declaration) (record_declaration)
 (enum_declaration)] @class
(delegate_declaration) @delegate
(enum_member_declaration) @constant
[(declaration_list) (enum_member_declaration_list)] @body
[(method_declaration) (constructor_declaration) (local_function_statement) (indexer_declaration)
 (operator_declaration)] @method
(property_declaration) @property
[(lambda_expression) (anonymous_method_expression)] @lambda
[(block) (for_statement) (foreach_statement) (using_statement) (catch_clause) (switch_section)
 (switch_expression_arm) (query_expression)] @block
(type_parameter) @type_parameter
[(parameter) (catch_declaration) (declaration_pattern) (declaration_expression)
 (recursive_pattern)] @parameter
(from_clause) @from
(variable_declaration) @variable
(implicit_parameter) @implicit
(qualified_name) @qualified
(argument name: (identifier) @key)
(attribute_argument name: (identifier) @key)
(initializer_expression (assignment_expression left: (identifier) @key))
[(member_access_expression) (conditional_access_expression)] @chain
(attribute name: (identifier) @attribute)
(_ type: [(identifier) @typed (generic_name . (identifier) @typed)])
(_ returns: [(identifier) @typed (generic_name . (identifier) @typed)])
(base_list [(identifier) @typed (generic_name . (identifier) @typed)])
(type_argument_list [(identifier) @typed (generic_name . (identifier) @typed)])
(as_expression right: [(identifier) @typed (generic_name . (identifier) @typed)])
(is_pattern_expression pattern: (constant_pattern (identifier) @typed))
(identifier) @name

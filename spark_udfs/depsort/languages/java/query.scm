; Of two captures of the same node the one that stands first here is handled first; names come last.
(package_declaration [(identifier) (scoped_identifier)] @package)
(import_declaration) @import
[(class_declaration) (interface_declaration) (enum_declaration) (record_declaration)
 (annotation_type_declaration)] @class
(enum_constant) @constant
[(class_body) (interface_body) (enum_body) (annotation_type_body)] @body
[(method_declaration) (constructor_declaration) (compact_constructor_declaration)
 (annotation_type_element_declaration)] @method
(lambda_expression) @lambda
[(block) (constructor_body) (for_statement) (enhanced_for_statement) (try_with_resources_statement)
 (catch_clause) (switch_rule) (switch_block_statement_group) (if_statement) (while_statement)] @block
(type_parameter) @type_parameter
[(formal_parameter) (spread_parameter) (catch_formal_parameter) (resource)] @parameter
[(field_declaration) (constant_declaration)] @field
(local_variable_declaration) @local
[(instanceof_expression) (type_pattern) (record_pattern_component)] @pattern
(switch_label (identifier) @label)
(scoped_type_identifier) @scoped
(scoped_identifier) @scoped
(method_reference) @reference
(method_invocation) @call
(field_access) @access
(element_value_pair key: (identifier) @key)
(labeled_statement (identifier) @key)
[(break_statement (identifier) @key) (continue_statement (identifier) @key)]
[(identifier) (type_identifier)] @name

; Of two captures of the same node the one that stands first here is handled first; names come last.
(package_header (qualified_identifier) @package)
(import) @import
(file_annotation) @file_annotation
(platform_modifier) @platform
[(class_declaration) (object_declaration)] @class
(enum_entry) @entry
[(class_body) (enum_class_body)] @body
[(function_declaration) (secondary_constructor) (getter) (setter)] @function
(lambda_literal) @lambda
(anonymous_function) @block
[(for_statement) (catch_block) (block) (when_expression) (when_entry)] @block
(type_parameter) @type_parameter
[(parameter) (class_parameter)] @parameter
(property_declaration) @property
(type_alias) @alias
(user_type) @type
(value_argument . (identifier) @key . (_))
(callable_reference) @reference
(navigation_expression) @chain
(identifier) @name

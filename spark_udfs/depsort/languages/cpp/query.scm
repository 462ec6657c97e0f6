(function_definition) @function
(declaration) @declaration
(field_declaration) @declaration
(type_definition) @typedef
(class_specifier name: (_) @type body: (_))
(struct_specifier name: (_) @type body: (_))
(union_specifier name: (_) @type body: (_))
(enum_specifier name: (_) @type body: (_))
(enumerator name: (identifier) @type)
(alias_declaration name: (type_identifier) @type)
(concept_definition name: (identifier) @type)
(class_specifier !body name: (type_identifier) @named)
(struct_specifier !body name: (type_identifier) @named)

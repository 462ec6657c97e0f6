"""Generated adverts: families of templates, of which a classifier sees some and is judged on the others.

A family is one trade with sentences of its own. Two families share ordinary words and the habits of adverts,
no sentence, so what a classifier knows of one it must carry over to the other.
"""

from __future__ import annotations

import random

import pyarrow as pa

SEEN = {
    "shop": [
        "Our {adjective} {thing} is back in stock for only {price}.",
        "Order today and get free shipping on your {thing}.",
        "Every {thing} comes with a {number} year warranty, or your money back.",
        "Customers love the {adjective} {thing} from {name}.",
        "Add it to your cart now, because only {number} are left.",
        "Choose between {color}, {color} and {color}.",
        "Use code {code} at the till and save {percent}.",
    ],
    "hotel": [
        "Book your stay at the {name} hotel in {place} now.",
        "Rooms with a view of the sea start at {price} a night, breakfast included.",
        "Our {adjective} pool and spa are waiting for you.",
        "Guests rate us {number} out of 10 for service.",
        "Cancel for free until {number} days before you arrive.",
        "Call {phone} and ask for our spring package.",
    ],
    "course": [
        "Become a {job} in just {number} weeks with {name} academy.",
        "Enrol before Friday and pay only {price} instead of {price}.",
        "More than {number},000 graduates have found a better job.",
        "Our {adjective} teachers answer all of your questions live.",
        "No experience is needed: sign up today and start your free trial.",
        "You get a certificate that employers know.",
    ],
    "dentist": [
        "Is your smile not what it was? Visit {name} dental care in {place}.",
        "New patients get a check-up and cleaning for {price}.",
        "Our {adjective} team has {number} years of experience with crowns and implants.",
        "Call {phone} to make an appointment today.",
        "We accept all insurance plans and offer payment by month.",
    ],
    "car": [
        "Drive home in a {adjective} {color} {thing} this weekend.",
        "{name} motors has {number} cars in stock, all inspected.",
        "Prices start at {price}, with financing from {percent} a year.",
        "Bring your old car and we will pay you {price} for it.",
        "Visit our showroom in {place} or go to www.{name}.example.",
    ],
    "pills": [
        "Lose {number} pounds in a month without hunger, guaranteed.",
        "{name} is made of {adjective} herbs and has no side effects.",
        "Doctors do not want you to know this {adjective} trick.",
        "Buy two bottles and get one free: click here while supplies last.",
        "Only {price} a bottle when you subscribe.",
    ],
}
UNSEEN = {
    "insurance": [
        "Are you paying too much for your car cover? Switch to {name} and keep {price} a year.",
        "Get a quote in {number} minutes, with no obligation.",
        "Our {adjective} advisers in {place} are there for you day and night: {phone}.",
        "Families trust {name} with their home, their health and their savings.",
        "One claim will not raise what you pay.",
    ],
    "estate": [
        "A {adjective} flat with {number} rooms in the heart of {place}, yours for {price}.",
        "Viewings this Sunday: write to sales@{name}.example to reserve a slot.",
        "Parking, lift and a roof terrace are part of the offer.",
        "Sell with {name} estates and you pay us nothing until it is sold.",
        "Homes like that one are gone in {number} days.",
    ],
    "app": [
        "Download {name} for free and plan your day in seconds.",
        "The {adjective} assistant that {number} million people use.",
        "Go premium for {price} a month and remove all limits.",
        "Rated {number} stars in every store.",
        "Try it free, cancel whenever you like.",
    ],
    "restaurant": [
        "Hungry? {name} brings {adjective} pizza to your door in {number} minutes.",
        "Two for one every Tuesday, and kids eat free.",
        "Order by phone, {phone}, or at www.{name}.example.",
        "Our lunch menu with a drink is {price}.",
        "Celebrate your birthday with us in {place} and the cake is on us.",
    ],
}
_WORDS = {
    "adjective": "amazing exclusive premium stunning reliable luxurious modern natural certified",
    "thing": "sofa jacket laptop watch blender bicycle camera tent lamp keyboard estate wagon van",
    "color": "red blue black silver green white brown",
    "name": "arvento bluepeak corvana delmora everly fairmont goldline harrow ivory juniper kestrel lumen",
    "place": "Springfield Riverton Lakeside Ashford Milltown Brighton Oakdale",
    "job": "designer developer coach analyst photographer translator",
    "code": "SAVE10 SPRING HELLO VIP24 EXTRA",
    "percent": "10% 15% 20% 3.9% 50%",
}


def adverts(families: dict[str, list[str]], n_each: int, seed: int) -> pa.Table:
    """Return (doc_id, source, key, text) of adverts, `n_each` of a family; a source is one advertiser."""
    chance = random.Random(seed)
    rows = []
    for family, sentences in families.items():
        for number in range(n_each):
            text = " ".join(_sentence(chance, chance.choice(sentences)) for _ in range(chance.randint(6, 18)))
            key = f"{family}/{number}"
            rows.append({"doc_id": key, "source": f"{family}{number % 8}", "key": key, "text": text})
    return pa.Table.from_pylist(rows)


def _sentence(chance: random.Random, template: str) -> str:
    for slot, words in _WORDS.items():
        while f"{{{slot}}}" in template:
            template = template.replace(f"{{{slot}}}", chance.choice(words.split()), 1)
    for slot, draw in (("price", _price), ("number", _number), ("phone", _phone)):
        while f"{{{slot}}}" in template:
            template = template.replace(f"{{{slot}}}", draw(chance), 1)
    return template


def _price(chance: random.Random) -> str:
    amount = chance.choice([19, 49, 99, 199, 450, 1_200])
    return chance.choice([f"${amount}", f"${amount}.99", f"{amount} EUR", f"{amount} dollars", f"€{amount}"])


def _number(chance: random.Random) -> str:
    return str(chance.randint(2, 30))


def _phone(chance: random.Random) -> str:
    return f"0{chance.randint(20, 99)} {chance.randint(100, 999)} {chance.randint(1_000, 9_999)}"
